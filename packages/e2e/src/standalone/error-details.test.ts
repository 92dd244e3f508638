import { beforeAll, describe, expect, inject, it } from 'vitest';
import type { Answer, SendOptions } from '../client/api.ts';
import { createApplication, createKey, MARKER, type Owner, signUp } from '../client/caller.ts';
import { ACTION, CHECK_NAME, TABLE, UPLOAD } from '../client/files.ts';
import { sendRaw } from '../client/raw-request.ts';

const KEYS = '/api/v1/panel/api-keys';
const CREATE = '/api/v1/panel/create-application';
const LEVELS = '/api/v1/panel/create-application-license-levels';
const SETTINGS = '/api/v1/panel/update-application-settings';
const AUDIT_LOG = '/api/v1/panel/audit-log';
const SIGN_UP = '/api/v1/auth/sign-up';

let owner: Owner;
let applicationId: string;
beforeAll(async () => {
  owner = await signUp();
  applicationId = await createApplication(owner.session);
});

const detailsOf = ({ text }: Answer) =>
  (JSON.parse(text) as { details: Array<{ path: string; message: string }> }).details.map(
    ({ path, message }) => `${path} ${message}`,
  );

/** A request and its details. */
type Case = readonly [target: string, options: SendOptions, details: readonly string[]];
const A = 'applicationId=a';
const levels = (...all: string[]) => ({ query: A, body: { levels: all } });
const FIELDS =
  'applicationLicenseRequiresClientId, applicationUserRequiresClientId, applicationUserRequiresLicense, version or status';
const FILE_NAME_RULE =
  'must be 1 to 16 characters: ASCII letters, digits, underscores and dashes, with single spaces or dots between them';

const CASES: readonly Case[] = [
  [`POST ${CREATE}`, {}, ['body must be a JSON object']],
  [`POST ${CREATE}`, { body: { name: 'short' } }, ['body.name must be 6 to 32 characters']],
  [`POST ${CREATE}`, { body: { name: 'long enough', more: 1 } }, ['body has an unknown property; known are name']],
  [`POST ${CREATE}`, { body: '{' }, ['body must be JSON in UTF-8']],
  [`POST ${CREATE}`, { body: '{"name":"a","name":"b"}' }, ['body must not have a property twice']],
  [`POST ${CREATE}`, { body: { name: 'a'.repeat(70_000) } }, ['body must be at most 64 KiB']],
  [`POST ${CREATE}`, { body: 'x', headers: { 'content-type': 'text/plain' } }, ['header.content-type must be application/json']],
  [
    `POST ${CREATE}`,
    { body: '{}', headers: { 'content-encoding': 'gzip' } },
    ['header.content-encoding must be identity or absent'],
  ],
  [`GET ${CREATE}`, {}, ['request must use the method POST']],
  [
    `POST ${LEVELS}`,
    levels(...Array(50).fill('')),
    [...[0, 1, 2].map((i) => `body.levels.${i} must be 1 to 16 characters`), 'body.levels must not have a level twice'],
  ],
  [
    `GET ${TABLE}`,
    { query: `${A}&${A}&currentPage=0` },
    ['query.applicationId must be given once', 'query.currentPage must be a whole number from 1'],
  ],
  [
    `GET ${TABLE}`,
    { query: `${A}&searchParams={}` },
    ['query.searchParams must be JSON of up to 1,024 characters: {"searchString": string, "categories": ["Name"]}'],
  ],
  [`POST ${CHECK_NAME}`, { query: A, body: { fileName: 'a'.repeat(17) } }, [`body.fileName ${FILE_NAME_RULE}`]],
  [`POST ${ACTION}`, { query: A, body: { action: 'x', fileId: 'a' } }, ['body.action must be delete_file or change_file_name']],
  [
    `POST ${UPLOAD}`,
    { query: `${A}&fileName=${'a'.repeat(17)}`, body: new Uint8Array(1), headers: { 'content-type': '' } },
    ['header.content-type must be application/octet-stream'],
  ],
  [
    `PATCH ${SETTINGS}`,
    { query: A, body: { field: 'x', value: null } },
    [`body.field must be ${FIELDS}`, 'body.value must be a boolean or a string'],
  ],
  [`GET ${AUDIT_LOG}`, { query: 'limit=101' }, ['query.limit must be a whole number from 1 to 100']],
  [
    `POST ${SIGN_UP}`,
    { body: { username: 'a b', email: 'unknown', password: 'short' } },
    [
      'body.username must be 3 to 32 ASCII letters, digits, underscores and dashes',
      'body.email must be an email address',
      'body.password must be 10 to 128 characters without NUL',
    ],
  ],
  [`POST ${KEYS}/x/revoke`, { body: { more: 1 } }, ['body must be absent or empty']],
];

describe('details name the input and the rule', () => {
  it.each(CASES)('%s %j', async (target, options, expected) => {
    const [method = '', path = ''] = target.split(' ');
    expect(detailsOf(await owner.session.send(method, path, options))).toEqual(expected);
  });

  it('also where a service rejects what the schema let through', async () => {
    const { session } = owner;
    const key = await createKey(owner);
    const set = (field: string, value: unknown) => session.patch(SETTINGS, { field, value }, { applicationId });
    const change = (body: object) => session.patch(`${KEYS}/${key.id}`, body);
    const rename = session.post(ACTION, { action: 'change_file_name', fileId: 'a' }, { applicationId });
    const refused = [
      await set('status', 'asleep'),
      await set('applicationUserRequiresLicense', 'true'),
      await rename,
      await change({ expiresAt: '9999-12-31T23:59:59-12:00' }),
    ];
    await session.post(`${KEYS}/${key.id}/revoke`);
    refused.push(
      await change({ name: 'Another' }),
      await session.post('/api/v1/auth/two-factor/disable', { code: 'x', password: 'x' }),
    );
    await session.post('/api/v1/auth/two-factor/set-up');
    refused.push(await session.post('/api/v1/auth/two-factor/enable', { code: 'x' }));
    expect(refused.flatMap(detailsOf)).toEqual([
      'body.value must be online or paused for this field',
      'body.value must be a boolean for this field',
      'body.fileName is required',
      'body.expiresAt must be in the future and before the year 10000',
      'params.id A revoked API key cannot be changed',
      'request Two-factor authentication is not on',
      'body.code The code is wrong, or was used before',
    ]);
  });
});

it('errors of requests that no route sees do not repeat them', async () => {
  const heads = [
    `GET /${MARKER} HTTP/1.1\r\nHost: a`,
    MARKER,
    `GET / HTTP/1.1\r\nHost: ${MARKER}\r\n${MARKER}`,
    ...['Host', 'Expect'].map((name) => `GET /healthz HTTP/1.1\r\nHost: a\r\n${name}: ${MARKER}`),
  ];
  for (const head of heads) {
    const [answer] = await sendRaw(inject('latchkeyInstance').port, `${head}\r\nConnection: close\r\n\r\n`);
    expect(answer?.text).toMatch(/"success":false/);
    expect(answer?.text).not.toContain(MARKER);
  }
});
