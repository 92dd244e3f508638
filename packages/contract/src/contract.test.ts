import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { FILE_NAME_LENGTH } from './file-name.ts';
import {
  APPLICATION_NAME,
  describeLength,
  EMAIL_LENGTH_MAX,
  KEY_NAME,
  LICENSE_LEVEL,
  LICENSE_LEVELS_MAX,
  PASSWORD,
  USERNAME_LENGTH,
  VERSION,
} from './lengths.ts';
import { AUDIT_PAGE_SIZE, DOWNLOAD_URL_LIFETIME_S, FILES_PAGE_SIZE } from './limits.ts';

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
  ['the expression of usernames', /\[A-Za-z0-9_-\]\{(?:3,32|\$)/, 'username'],
  ['the length of usernames', /\b3(?:,| to) 32\b|min: 3, max: 32\b|USERNAME_LENGTH_MAX = /, 'lengths'],
  ['the length of passwords', /\b10(?:,| to) 128\b|min: 10, max: 128\b|PASSWORD_LENGTH_\w+ = |At least 10 char/, 'lengths'],
  ['the length of emails', /\(254\)|\b254 char|EMAIL_LENGTH_MAX = /, 'lengths'],
  ['the length of searches', /SEARCH_PARAMS_LENGTH_MAX = |JSON of up to 1,024 char/, 'lengths'],
  ['the page size of the audit log', /AUDIT_PAGE_SIZE = |\bLIMIT_DEFAULT = 50\b|DEFAULT_LIMIT = 50\b|limit: 50\b/, 'limits'],
  ['the size of JSON bodies', /JSON_BODY_KIB_MAX = |(?:must be at most|body is over) 64 KiB|bodyLimit: 6/, 'limits'],
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
  ['audit/v1/audit', `1 to ${AUDIT_PAGE_SIZE.max}. Zero means ${AUDIT_PAGE_SIZE.default}.`],
  ['identity/v1/account', `Username, ${USERNAME_LENGTH.min} to ${USERNAME_LENGTH.max} of `],
  ['identity/v1/account', `"must be ${describeLength(PASSWORD)}"`],
  ['identity/v1/account', `Password, ${describeLength(PASSWORD)}.`],
  ['identity/v1/account', `Email address, up to ${EMAIL_LENGTH_MAX} characters.`],
  ['identity/v1/credential', `New password, ${describeLength(PASSWORD)}.`],
  ['identity/v1/credential', `New email address, up to ${EMAIL_LENGTH_MAX} characters.`],
  ['files/v1/file', `${FILE_NAME_LENGTH}: groups of ASCII`],
  ['files/v1/file', `${seconds}. Zero means ${DOWNLOAD_URL_LIFETIME_S.default}.`],
  ['files/v1/file', `Zero means ${FILES_PAGE_SIZE}.`],
])('%s.proto states: %s', (name, text) => {
  expect(read(`proto/schema/latchkey/${name}.proto`)).toContain(text);
});

it('the published client, which imports nothing, reads the largest pages of the audit log', () => {
  expect(read('packages/client/src/resources/audit-log.ts')).toContain(`PAGE_SIZE_MAX = ${AUDIT_PAGE_SIZE.max};`);
});
