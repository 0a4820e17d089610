// Records which tools published MCP servers have, and by which names these take their arguments, into recipes/testdata/tools.
// A recipe that names a tool or an argument which is not there fails its test.
//
//	npm install --prefix DIR --ignore-scripts @cocal/google-calendar-mcp@2.6.3 @notionhq/notion-mcp-server@2.5.2 \
//	  @bytebase/dbhub@1.4.0 caldav-mcp@0.10.0 @modelcontextprotocol/server-memory@2026.8.31 @modelcontextprotocol/server-filesystem@2026.8.31
//	node tools/record-tools.mjs DIR
//
// Nothing leaves this machine: the servers get credentials that are none, and a CalDAV server that answers just enough to start.
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const dir = process.argv[2];
if (!dir) {
	console.error('usage: node tools/record-tools.mjs DIR, where npm has installed the servers');
	process.exit(2);
}
const out = new URL('../recipes/testdata/tools/', import.meta.url);
const work = mkdtempSync(join(tmpdir(), 'record-'));

const calendar = http.createServer((request, response) => {
	let body = '';
	request.on('data', (d) => (body += d));
	request.on('end', () => {
		const answer = (href, prop) => `<?xml version="1.0"?><d:multistatus xmlns:d="DAV:" xmlns:c="urn:ietf:params:xml:ns:caldav"><d:response>
<d:href>${href}</d:href><d:propstat><d:prop>${prop}</d:prop><d:status>HTTP/1.1 200 OK</d:status></d:propstat></d:response></d:multistatus>`;
		response.writeHead(207, { 'content-type': 'application/xml' });
		if (body.includes('current-user-principal')) {
			response.end(answer('/', '<d:current-user-principal><d:href>/p/</d:href></d:current-user-principal>'));
		} else if (body.includes('calendar-home-set')) {
			response.end(answer('/p/', '<c:calendar-home-set><d:href>/c/</d:href></c:calendar-home-set>'));
		} else {
			response.end(answer('/c/one/', '<d:displayname>One</d:displayname><d:resourcetype><d:collection/><c:calendar/></d:resourcetype>'));
		}
	});
});
await new Promise((ready) => calendar.listen(0, '127.0.0.1', ready));

writeFileSync(join(work, 'google.json'), '{"installed":{"client_id":"none","client_secret":"none","redirect_uris":["http://localhost"]}}');
writeFileSync(join(work, 'dbhub.toml'), '[[sources]]\nid = "main"\ndsn = "postgres://none:none@127.0.0.1:1/none"\nlazy = true\n');

const servers = [
	{ name: 'filesystem', pkg: '@modelcontextprotocol/server-filesystem', file: 'dist/index.js', args: [work] },
	{ name: 'memory', pkg: '@modelcontextprotocol/server-memory', file: 'dist/index.js', env: { MEMORY_FILE_PATH: join(work, 'memory.jsonl') } },
	{ name: 'google-calendar', pkg: '@cocal/google-calendar-mcp', file: 'build/index.js', env: { GOOGLE_OAUTH_CREDENTIALS: join(work, 'google.json'), XDG_CONFIG_HOME: work } },
	{ name: 'notion', pkg: '@notionhq/notion-mcp-server', file: 'bin/cli.mjs', env: { NOTION_TOKEN: 'none' } },
	{ name: 'sqlite', pkg: '@bytebase/dbhub', file: 'dist/index.js', args: ['--transport', 'stdio', '--config', join(work, 'dbhub.toml')] },
	{
		name: 'caldav', pkg: 'caldav-mcp', file: 'dist/index.js',
		env: { CALDAV_BASE_URL: `http://127.0.0.1:${calendar.address().port}/`, CALDAV_USERNAME: 'none', CALDAV_PASSWORD: 'none' },
	},
];

async function record({ name, pkg, file, args = [], env = {} }) {
	const root = join(dir, 'node_modules', pkg);
	const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
	const server = spawn('node', [join(root, file), ...args], { stdio: ['pipe', 'pipe', 'inherit'], env: { ...process.env, ...env } });
	const waiting = new Map();
	let buffer = '';
	server.stdout.on('data', (d) => {
		buffer += d;
		for (let end; (end = buffer.indexOf('\n')) >= 0; buffer = buffer.slice(end + 1)) {
			try {
				const message = JSON.parse(buffer.slice(0, end));
				waiting.get(message.id)?.(message.result);
			} catch {} // some servers log to their output
		}
	});
	const send = (message) => server.stdin.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\n');
	const ask = (id, method, params) => new Promise((answered, gaveUp) => {
		waiting.set(id, answered);
		setTimeout(() => gaveUp(new Error(`${pkg} does not answer ${method}`)), 20_000).unref();
		send({ id, method, params });
	});
	await ask(1, 'initialize', { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'record-tools', version: '1' } });
	send({ method: 'notifications/initialized' });
	const { tools } = await ask(2, 'tools/list', {});
	server.kill();
	const lines = tools.map((t) => '\t\t' + JSON.stringify({
		name: t.name, arguments: Object.keys(t.inputSchema.properties ?? {}), readOnly: t.annotations?.readOnlyHint ?? null, destructive: t.annotations?.destructiveHint ?? null,
	}));
	writeFileSync(new URL(name + '.json', out), `{\n\t"server": ${JSON.stringify(`${pkg} ${version}`)},\n\t"complete": true,\n\t"tools": [\n${lines.join(',\n')}\n\t]\n}\n`);
	console.log(`${name}: ${tools.length} tools of ${pkg} ${version}`);
}

for (const server of servers) await record(server);
calendar.close();
process.exit(0);
