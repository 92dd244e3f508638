// Writes the numbers of the contract into the files that state them and can't import them.
// Sentences are found by their words. Part of npm run generate.
import { readFileSync, writeFileSync } from 'node:fs';
import { AVATAR_BYTES_MAX } from '../src/avatar.ts';
import { DOWNLOAD_URL_LIFETIME_S } from '../src/download-url.ts';
import { FILE_NAME_LENGTH_MAX } from '../src/file-name.ts';
import { KEY_OVERLAP_SECONDS_MAX } from '../src/key-overlap.ts';
import * as lengths from '../src/lengths.ts';
import { LICENSE_LEVEL, LICENSE_LEVELS_MAX } from '../src/license-level.ts';
import { JSON_BODY_KIB_MAX } from '../src/limits.ts';
import { API_KEYS_PAGE_SIZE, AUDIT_PAGE_SIZE, FILES_PAGE_SIZE } from '../src/page-size.ts';
import { UNFINISHED_UPLOADS_MAX, UPLOAD_LIFETIME_HOURS } from '../src/resumable-upload.ts';
import { AUDIENCE_LENGTH_MAX, TRUSTED_ISSUERS_MAX } from '../src/trusted-issuer.ts';
import { USERNAME_LENGTH } from '../src/username.ts';

type Rule = number | { readonly min: number; readonly max: number };

const { APPLICATION_NAME, EMAIL_LENGTH_MAX, KEY_NAME, PASSWORD, VERSION } = lengths;
const AUDIT_ENTRIES = { min: 1, max: AUDIT_PAGE_SIZE.max };
const FILE_NAME = { min: 1, max: FILE_NAME_LENGTH_MAX };
const LEVELS = { min: 1, max: LICENSE_LEVELS_MAX };
const OVERLAP = { min: 0, max: KEY_OVERLAP_SECONDS_MAX };
/** Services may ask for less than clients. */
const LIFETIME = { min: 1, max: DOWNLOAD_URL_LIFETIME_S.max };
const AVATAR_MIB = AVATAR_BYTES_MAX / 1024 / 1024;

/** Files, a sentence with `#` for each rule, and the rules. */
const STATEMENTS: ReadonlyArray<readonly [paths: string, sentence: string, ...rules: Rule[]]> = [
  ['apps/v1/application', 'The name must have # characters', APPLICATION_NAME],
  ['apps/v1/application', 'Name, # characters.', APPLICATION_NAME],
  ['apps/v1/application', 'Name, # Unicode code points', APPLICATION_NAME],
  ['apps/v1/application', 'Version for clients, # characters', VERSION],
  ['apps/v1/application', '`version` (# characters', VERSION],
  ['apps/v1/application', 'License levels must be #, each # characters', LEVELS, LICENSE_LEVEL],
  ['apps/v1/application', 'Levels, #, each # characters', LEVELS, LICENSE_LEVEL],
  ['apps/v1/application', 'The overlap must be # seconds', OVERLAP],
  ['apps/v1/application', 'the old key is accepted too, #.', OVERLAP],
  ['apps/v1/event', 'min_length: #,\n    max_length: #,', VERSION.min, VERSION.max],
  ['audit/v1/audit', 'Entries to return at most, #. Zero means #.', AUDIT_ENTRIES, AUDIT_PAGE_SIZE.default],
  ['files/v1/file', '# characters: groups of ASCII', FILE_NAME],
  ['files/v1/file', 'Files a page, #. Zero means #.', { min: 1, max: FILES_PAGE_SIZE.max }, FILES_PAGE_SIZE.default],
  ['files/v1/file', 'a download URL must be # seconds', LIFETIME],
  ['files/v1/file', 'Lifetime of the URL in seconds, #. Zero means #.', LIFETIME, DOWNLOAD_URL_LIFETIME_S.default],
  ['identity/v1/account', 'must be # characters', PASSWORD],
  ['identity/v1/account', 'Password, # characters', PASSWORD],
  ['identity/v1/account', 'Email address, up to # characters', EMAIL_LENGTH_MAX],
  ['identity/v1/account', 'Username as its owner wrote it, # of', USERNAME_LENGTH],
  ['identity/v1/account', 'Username, # of', USERNAME_LENGTH],
  ['identity/v1/credential', 'New password, # characters', PASSWORD],
  ['identity/v1/credential', 'New email address, up to # characters', EMAIL_LENGTH_MAX],
  ['identity/v1/api_key identity/v1/trusted_issuer', 'Name that its owner gave it, # characters', KEY_NAME],
  ['identity/v1/api_key', 'Name, # Unicode code points', KEY_NAME],
  ['identity/v1/api_key', 'the old key stays valid, #.', OVERLAP],
  ['identity/v1/api_key', 'Up to # keys', API_KEYS_PAGE_SIZE],
  ['identity/v1/trusted_issuer', 'Audience, # characters', { min: 1, max: AUDIENCE_LENGTH_MAX }],
  ['identity/v1/trusted_issuer', 'Up to #, oldest first', TRUSTED_ISSUERS_MAX],
  ['packages/client/src/resources/audit-log.ts', 'PAGE_SIZE_MAX = #;', AUDIT_PAGE_SIZE.max],
  ['README.md docs/rest.md', '"message": "must be # characters" }]', APPLICATION_NAME],
  ['docs/rest.md', 'the name does not have # characters', APPLICATION_NAME],
  ['docs/rest.md', '`version` | # characters', VERSION],
  ['docs/rest.md', 'no level, more than #, a level that does not have # characters', LEVELS.max, LICENSE_LEVEL],
  ['docs/rest.md', 'The table has # rows a page', FILES_PAGE_SIZE.default],
  ['docs/rest.md', 'JSON bodies have at most # KiB', JSON_BODY_KIB_MAX],
  ['docs/rest.md', 'returns a URL of the bytes, for # seconds', DOWNLOAD_URL_LIFETIME_S],
  ['docs/rest.md docs/avatars.md', 'WebP, up to # MiB', AVATAR_MIB],
  ['docs/files.md', '`lifetimeSeconds`: #, # unless set', DOWNLOAD_URL_LIFETIME_S, DOWNLOAD_URL_LIFETIME_S.default],
  ['docs/files.md', '# characters: groups of ASCII', FILE_NAME],
  ['files/v1/upload', 'expires # hours after its last chunk', UPLOAD_LIFETIME_HOURS],
  ['files/v1/upload', 'It remembers finished ones for # hours', UPLOAD_LIFETIME_HOURS],
  ['docs/files.md', 'It expires # hours after', UPLOAD_LIFETIME_HOURS],
  ['docs/files.md', 'For # hours, `HEAD`', UPLOAD_LIFETIME_HOURS],
  ['docs/files.md', 'unfinished uploads of the account, at most #', UNFINISHED_UPLOADS_MAX],
  ['docs/files.md', '`Upload-Length`, # unfinished uploads', UNFINISHED_UPLOADS_MAX],
  ['docs/audit-log.md', 'entries per page, #; default #', AUDIT_ENTRIES, AUDIT_PAGE_SIZE.default],
  ['docs/operators.md', 'passwords of # characters', PASSWORD],
  ['docs/specification.md', 'JSON bodies have at most # KiB', JSON_BODY_KIB_MAX],
  ['docs/specification.md', 'A name has # code points', APPLICATION_NAME],
  ['docs/specification.md', '`version` has # characters', VERSION],
  ['docs/specification.md', 'in the order given: # levels', LEVELS],
  ['docs/specification.md', 'A level has # code points', LICENSE_LEVEL],
  ['docs/specification.md', 'A name has # characters: ASCII', FILE_NAME],
  ['docs/specification.md', 'The files table has # rows', FILES_PAGE_SIZE.default],
  ['docs/specification.md', '`searchParams` is JSON of at most # characters', lengths.SEARCH_PARAMS_LENGTH_MAX],
  ['docs/specification.md', 'WebP of at most # MiB', AVATAR_MIB],
  ['docs/specification.md', 'gives a URL for # seconds', DOWNLOAD_URL_LIFETIME_S],
];

const ROOT = new URL('../../../', import.meta.url);
const NUMBERS = '\\d[\\d,]*(?: to \\d[\\d,]*)?';

const escapePattern = (text: string) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
const format = (value: number) => value.toLocaleString('en');
const describe = (rule: Rule) => (typeof rule === 'number' ? format(rule) : `${format(rule.min)} to ${format(rule.max)}`);

/** Files whose numbers are not those of the contract, with the text that they should have. */
export function findOutdated(): Array<readonly [file: URL, text: string]> {
  const files = new Map<string, string>();
  for (const [paths, sentence, ...rules] of STATEMENTS) {
    for (const name of paths.split(' ')) {
      const path = name.includes('.') ? name : `proto/schema/latchkey/${name}.proto`;
      const text = files.get(path) ?? readFileSync(new URL(path, ROOT), 'utf8');
      const pattern = new RegExp(sentence.split('#').map(escapePattern).join(NUMBERS), 'g');
      if (!pattern.test(text)) throw new Error(`${path} does not state "${sentence}"`);
      const values = rules.map(describe);
      const stated = sentence.replace(/#/g, () => values.shift() ?? '#');
      files.set(path, text.replace(pattern, stated));
    }
  }
  return [...files]
    .map(([path, text]) => [new URL(path, ROOT), text] as const)
    .filter(([file, text]) => readFileSync(file, 'utf8') !== text);
}

if (import.meta.main) for (const [file, text] of findOutdated()) writeFileSync(file, text);
