import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { FILE_NAME_LENGTH } from './file-name.ts';
import { APPLICATION_NAME, describeLength, KEY_NAME, LICENSE_LEVEL, LICENSE_LEVELS_MAX, VERSION } from './lengths.ts';
import { DOWNLOAD_URL_LIFETIME_S, FILES_PAGE_SIZE } from './limits.ts';

const ROOT = join(import.meta.dirname, '../../..');
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');

const IS_LEFT_OUT = /node_modules|[.]test[.]ts$|\/(testing|generated|dist)\/|^packages\/(e2e|testkit)\//;
const SOURCES = globSync(['{packages,services}/*/{src,scripts}/**/*.{ts,tsx,mjs}', 'bench/**/*.ts'], { cwd: ROOT })
  .filter((path) => !IS_LEFT_OUT.test(path))
  .map((path) => [path, read(path)] as const);

it.each([
  ['the length of application names', /\b6(?:,| to) 32\b|min: 6\b/, 'lengths'],
  ['the length of key names', /\b3(?:,| to) 64\b|min: 3,/, 'lengths'],
  ['the length of versions', /\b1 to 64 char|, 1, 64[,)]|VERSION.*max: 64\b/, 'lengths'],
  ['the length of license levels', /\b1 to 16 char|\b1, 16[,)]|LEVEL.*\b16\b/, 'lengths'],
  ['the number of license levels', /LEVELS_MAX = |\b1,000 levels/, 'lengths'],
  ['the length of file names', /NAME_LENGTH_MAX = 16\b/, 'file-name'],
  ['the expression of file names', /\[ \.\]\[A-Za-z0-9_-\]/, 'file-name'],
  ['the rule of file names', /ASCII letters, digits, underscores and dashes, with/, 'file-name'],
  ['the scopes', /'files:upload'[\s\S]{0,200}'files:delete'/, 'scopes'],
  ['the flags of applications', /applicationUserRequiresClientId/, 'application-settings'],
  ['the live events', /\.application\.resumed'|'The application is online again/, 'live-events'],
  ['the page size of files', /\bPAGE_SIZE = 10\b|FILES_PAGE_SIZE = /, 'limits'],
  ['the lifetime of download URLs', /\b30 to 3,600\b|(?:max: |max\(|MAX = )3_600\b/, 'limits'],
  ['the size of avatars', /\b3 \* 1_?024 \* 1_?024\b|\bup to 3 MiB\b/, 'limits'],
  ['the age of principals', /PRINCIPAL_AGE\w* = /, 'limits'],
])('%s is written once', (_rule, pattern, module) => {
  const places = SOURCES.filter(([, text]) => pattern.test(text)).map(([path]) => path);
  expect(places).toEqual([`packages/contract/src/${module}.ts`]);
});

const seconds = `1 to ${DOWNLOAD_URL_LIFETIME_S.max.toLocaleString('en')}`;
const levels = `1 to ${LICENSE_LEVELS_MAX.toLocaleString('en')}, each ${describeLength(LICENSE_LEVEL)}`;

it.each([
  ['apps/v1/application', `The name must have ${describeLength(APPLICATION_NAME)}"`],
  ['apps/v1/application', `Name, ${APPLICATION_NAME.min} to ${APPLICATION_NAME.max} Unicode`],
  ['apps/v1/application', `Version for clients, ${describeLength(VERSION)}`],
  ['apps/v1/application', `License levels must be ${levels}`],
  ['identity/v1/api_key', `Name, ${KEY_NAME.min} to ${KEY_NAME.max} Unicode`],
  ['files/v1/file', `${FILE_NAME_LENGTH}: groups of ASCII`],
  ['files/v1/file', `${seconds}. Zero means ${DOWNLOAD_URL_LIFETIME_S.default}.`],
  ['files/v1/file', `Zero means ${FILES_PAGE_SIZE}.`],
])('%s.proto states: %s', (name, text) => {
  expect(read(`proto/schema/latchkey/${name}.proto`)).toContain(text);
});
