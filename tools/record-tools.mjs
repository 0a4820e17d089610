// Records which tools a published server has, and which arguments they take: names, what is required, and hints. No texts.
//
//   node tools/record-tools.mjs NAME@VERSION COMMAND... > recipes/testdata/tools/RECIPE.json
//
// The package is installed by hand, outside of this tree; variables that the server wants to start are set by hand, too.
import { spawn } from "node:child_process";

const [server, command, ...args] = process.argv.slice(2);
const child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
const send = (m) => child.stdin.write(JSON.stringify({ jsonrpc: "2.0", ...m }) + "\n");
let rest = "", tools = [];
child.stdout.on("data", (b) => {
  rest += b;
  for (let i; (i = rest.indexOf("\n")) >= 0; rest = rest.slice(i + 1)) {
    const line = rest.slice(0, i);
    let m;
    try { m = JSON.parse(line); } catch { continue; }
    if (m.id === 1) {
      send({ method: "notifications/initialized" });
      send({ id: 2, method: "tools/list" });
    } else if (m.id >= 2) {
      tools.push(...m.result.tools);
      if (m.result.nextCursor) {
        send({ id: m.id + 1, method: "tools/list", params: { cursor: m.result.nextCursor } });
        continue;
      }
      const list = tools.map((t) => ({
        name: t.name,
        arguments: Object.keys(t.inputSchema.properties ?? {}),
        required: t.inputSchema.required ?? [],
        readOnlyHint: t.annotations?.readOnlyHint,
        destructiveHint: t.annotations?.destructiveHint,
      })).sort((a, b) => (a.name < b.name ? -1 : 1));
      process.stdout.write(JSON.stringify({ server, tools: list }, null, 1) + "\n");
      child.kill();
      process.exit(0);
    }
  }
});
send({ id: 1, method: "initialize", params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "record-tools", version: "1" } } });
setTimeout(() => { child.kill(); process.exit(1); }, 20000).unref();
