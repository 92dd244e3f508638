import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { findOutdated } from '../scripts/state-rules.ts';

const ROOT = join(import.meta.dirname, '../../..');
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');

const IS_LEFT_OUT = /node_modules|[.]test[.]ts$|\/(testing|generated|dist)\/|^packages\/(e2e|testkit)\//;
const SOURCES = globSync(['{packages,services}/*/{src,scripts}/**/*.{ts,tsx,mjs}', 'bench/**/*.ts'], { cwd: ROOT })
  .filter((path) => !IS_LEFT_OUT.test(path))
  .map((path) => [path, read(path)] as const);

it.each([
  ['the length of application names', /\b6(?:,| to) 32\b|min: 6\b/, 'lengths'],
  ['the length of key names', /\b3(?:,| to) 64\b|min: 3, max: 64/, 'lengths'],
  ['the length of versions', /\b1 to 64 char|, 1, 64[,)]|VERSION.*max: 64\b/, 'lengths'],
  ['the length of license levels', /\b1 to 16 char|\b1, 16[,)]|LEVEL.*\b16\b/, 'license-level'],
  ['the number of license levels', /LEVELS_MAX = |\b1,000 levels/, 'license-level'],
  ['the length of file names', /NAME_LENGTH_MAX = 16\b/, 'file-name'],
  ['the expression of file names', /\[ \.\]\[A-Za-z0-9_-\]/, 'file-name'],
  ['the rule of file names', /ASCII letters, digits, underscores and dashes, with/, 'file-name'],
  ['the expression of usernames', /\[A-Za-z0-9_-\]\{(?:3,32|\$)/, 'username'],
  ['the length of usernames', /\b3(?:,| to) 32\b|min: 3, max: 32\b|USERNAME_LENGTH_MAX = /, 'username'],
  ['the length of passwords', /\b10(?:,| to) 128\b|min: 10, max: 128\b|PASSWORD_LENGTH_\w+ = |At least 10 char/, 'lengths'],
  ['the length of emails', /\(254\)|\b254 char|EMAIL_LENGTH_MAX = /, 'lengths'],
  ['the length of searches', /SEARCH_PARAMS_LENGTH_MAX = |JSON of up to 1,024 char/, 'lengths'],
  ['the page size of the audit log', /AUDIT_PAGE_SIZE = |\bLIMIT_DEFAULT = 50\b|DEFAULT_LIMIT = 50\b|limit: 50\b/, 'page-size'],
  ['the size of JSON bodies', /JSON_BODY_KIB_MAX = |(?:must be at most|body is over) 64 KiB|bodyLimit: 6/, 'limits'],
  ['the scopes', /'files:upload'[\s\S]{0,200}'files:delete'/, 'scopes'],
  ['the flags of applications', /applicationUserRequiresClientId/, 'setting-definitions'],
  ['the page size of files', /\bPAGE_SIZE = 10\b|FILES_PAGE_SIZE = /, 'page-size'],
  ['the lifetime of download URLs', /\b30 to 3,600\b|(?:max: |max\(|MAX = )3_600\b/, 'download-url'],
  ['the size of avatars', /\b3 \* 1_?024 \* 1_?024\b|\bup to 3 MiB\b/, 'avatar'],
  ['the pixels of avatars', /\b16_000_000\b|SIDE\w* = 256\b/, 'avatar'],
  ['the invisible characters', /Default_Ignorable/, 'invisible'],
  ['the limits of accounts', /_PER_HOUR: [\d_]+|\b(?:MIB|COUNT_LIMIT): [\d_]+/, 'default-limits'],
  ['the age of principals', /PRINCIPAL_AGE\w* = /, 'principal-age'],
])('%s is written once', (_rule, pattern, module) => {
  const places = SOURCES.filter(([, text]) => pattern.test(text)).map(([path]) => path);
  expect(places).toEqual([`packages/contract/src/${module}.ts`]);
});

it('files that state rules of the contract have its numbers', () => {
  expect(findOutdated().map(([file]) => file.pathname)).toEqual([]);
});
