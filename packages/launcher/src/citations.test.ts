import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs';
import { glob } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import { ROOT } from './program.ts';

const SOURCES = '{bench,deploy,packages/*/src,services/*/src,proto/schema,docs}/**/*.{ts,tsx,proto,md}';
const COMMENT = /(?:\/\/|\/\*\*|^\s*\*|^[#|]) .*/gm;

const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');
const matches = (text: string, pattern: RegExp) => [...text.matchAll(pattern)].map(([whole, one]) => one ?? whole);

/** Citations in comments and documents, each with one file that has it. */
async function findCitations(pattern: RegExp): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  for await (const path of glob(SOURCES, { cwd: ROOT, exclude: (name) => name === 'node_modules' }))
    for (const comment of matches(read(path), COMMENT)) for (const one of matches(comment, pattern)) found.set(one, path);
  return found;
}

it('every cited section of the specification exists', async () => {
  const sections = matches(read('docs/specification.md'), /^##+ ([\d.]+?)\.? /gm);
  const cited = await findCitations(/\bspecification\s+(\d+(?:\.\d+)*)/gi);
  expect(cited.size).toBeGreaterThan(10);
  expect([...cited].filter(([section]) => !sections.includes(section))).toEqual([]);
  expect([...(await findCitations(/\bdecisions \d+/gi))]).toEqual([]);
});

it('every cited page exists, and has the heading that a link names', async () => {
  const pages = await findCitations(/\bdocs\/[\w/-]+\.md/g);
  const decisions = await findCitations(/\bADR (\d+)/g);
  expect(Math.min(pages.size, decisions.size)).toBeGreaterThan(5);
  const written = readdirSync(join(ROOT, 'docs/adr')).map((name) => String(Number.parseInt(name, 10)));
  expect([...decisions].filter(([number]) => !written.includes(number))).toEqual([]);
  const links = globSync('{*.md,docs/**/*.md}', { cwd: ROOT }).flatMap((from) =>
    matches(read(from), /\]\((?!https?:)([^)\s]+)/g).map((link) => {
      const [path = '', heading] = link.split('#');
      return { from, path: path === '' ? from : join(dirname(from), path), heading };
    }),
  );
  const missing = [...links, ...[...pages].map(([path, from]) => ({ from, path, heading: undefined }))].filter(
    ({ path, heading }) => !existsSync(join(ROOT, path)) || (heading && !anchorsOf(read(path)).includes(heading)),
  );
  expect(missing).toEqual([]);
});

/** Anchors of headings, as GitHub makes them. */
function anchorsOf(page: string): string[] {
  const headings = matches(page, /^#+ (.+)$/gm);
  return headings.map((heading) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  );
}

it('every cited promise exists, and every promise names tests that exist', async () => {
  const page = read('docs/promises.md');
  const promises = matches(page, /\b([RSF]\d+)(?=,? .*\|)/g);
  const cited = await findCitations(/(?<![\w-])([RSF]\d{1,2})\b(?= and |[-,:.)])/g);
  expect(cited.size).toBeGreaterThan(10);
  expect([...cited].filter(([promise]) => !promises.includes(promise))).toEqual([]);
  const rows = matches(page, /^\| [RS]\d+ .*/gm);
  const missing = rows.filter((row) => {
    const tests = matches(row.split('|').at(-2) ?? '', /`([^`]+)`/g);
    return tests.length === 0 || tests.some((path) => !existsSync(join(ROOT, path)));
  });
  expect([rows.length, missing]).toEqual([26, []]);
});
