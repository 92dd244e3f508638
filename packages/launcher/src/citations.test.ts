import { existsSync, readFileSync } from 'node:fs';
import { glob } from 'node:fs/promises';
import { join } from 'node:path';
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
