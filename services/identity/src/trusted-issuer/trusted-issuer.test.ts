import { toBinary } from '@bufbuild/protobuf';
import { auditReader } from '@latchkey/audit/testing/audit-reader';
import { JSON_BODY_KIB_MAX } from '@latchkey/contract/limits';
import { TRUSTED_ISSUERS_MAX } from '@latchkey/contract/trusted-issuer';
import { MESSAGE_BYTES_MAX } from '@latchkey/kit/rpc/route';
import { ListTrustedIssuersResponseSchema } from '@latchkey/proto/latchkey/identity/v1/trusted_issuer_pb';
import { refusalOf } from '@latchkey/testkit/refusal';
import { exportJWK, generateKeyPair } from 'jose';
import { expect, test } from 'vitest';
import { openTestIdentity, outcomeOf } from '../testing/identity.ts';
import { OPEN_KEY, someAccountId } from '../testing/sample.ts';

const identity = await openTestIdentity();
const { trustedIssuers } = identity;

const SETTINGS = {
  ...OPEN_KEY,
  ...{ issuer: 'https://issuer.test/path', audience: 'latchkey', claims: '{"repository":"acme/editor"}', lifetimeSeconds: 60 },
};
type Settings = typeof SETTINGS & { readonly jwks?: string; readonly applicationIds?: string[] };
const create = (accountId: string, change: Partial<Settings> = {}) =>
  trustedIssuers.createTrustedIssuer({ ...SETTINGS, ...change, accountId });
const keySet = (...keys: unknown[]) => JSON.stringify({ keys });

test('a trusted issuer is listed for its account, and in the audit log', async () => {
  const accountId = await someAccountId(identity);
  const { trustedIssuer } = await create(accountId);
  const { name, scopes, ...settings } = SETTINGS;
  expect(trustedIssuer).toMatchObject({ name, scopes, ...settings });
  expect((await trustedIssuers.listTrustedIssuers({ accountId })).trustedIssuers).toEqual([trustedIssuer]);
  expect((await trustedIssuers.listTrustedIssuers({ accountId: await someAccountId(identity) })).trustedIssuers).toEqual([]);
  const [entry] = (await auditReader(identity.service.routes)(accountId)).slice(-1);
  const changes = { trustedIssuerId: trustedIssuer?.id, issuer: settings.issuer, claims: ['repository=acme/editor'] };
  expect(entry).toMatchObject({ action: 'trusted_issuer.created', changes });
});

test.each<[string, Partial<Settings>]>([
  ['an issuer over http', { issuer: 'http://issuer.test' }],
  ['an issuer on loopback that is not listed', { issuer: 'http://127.0.0.1' }],
  ['an issuer with a query', { issuer: 'https://issuer.test?a=b' }],
  ['an issuer with an empty query', { issuer: 'https://issuer.test?' }],
  ['an issuer with a space', { issuer: 'https://issuer.test ' }],
  ['an issuer with a password', { issuer: 'https://a:b@issuer.test' }],
  ['no audience', { audience: '' }],
  ['no claim', { claims: '{}' }],
  ['no claim beside iss and aud', { claims: '{"iss":"https://issuer.test","aud":"latchkey"}' }],
  ['a claim that is a list', { claims: '{"groups":["a"]}' }],
  ['a claim that is null', { claims: '{"sub":null}' }],
  ['a list of claims', { claims: '["sub"]' }],
  ['a lifetime of 59 s', { lifetimeSeconds: 59 }],
  ['a lifetime of 901 s', { lifetimeSeconds: 901 }],
  ['an empty key set', { jwks: keySet() }],
  ['a key set with a secret', { jwks: keySet({ kty: 'oct', k: 'AAAA' }) }],
  ['a key that cannot be imported', { jwks: keySet({ kty: 'EC', crv: 'P-256', x: 'AAAA', y: 'AAAA' }) }],
  ['a key with an algorithm of another type', { jwks: keySet({ kty: 'OKP', crv: 'Ed25519', x: 'A'.repeat(43), alg: 'RS256' }) }],
])('rejects %s', async (_what, change) => {
  const accountId = await someAccountId(identity);
  expect(await outcomeOf(create(accountId, change))).toBe('trusted_issuer_settings_invalid');
  expect((await trustedIssuers.listTrustedIssuers({ accountId })).trustedIssuers).toEqual([]);
});

test('20 of the size of a request body fit in a message', async () => {
  const accountId = await someAccountId(identity);
  const jwk = await exportJWK((await generateKeyPair('ES256', { extractable: true })).publicKey);
  const jwks = keySet({ ...jwk, kid: 'x'.repeat(JSON_BODY_KIB_MAX * 1024) });
  for (let n = 0; n < TRUSTED_ISSUERS_MAX; n += 1) await create(accountId, { issuer: `cluster ${n}`, jwks });
  const response = await trustedIssuers.listTrustedIssuers({ accountId });
  expect(toBinary(ListTrustedIssuersResponseSchema, response).byteLength).toBeLessThan(MESSAGE_BYTES_MAX);
});

test('rejects a private key, and drops keys for encryption', async () => {
  const accountId = await someAccountId(identity);
  const { privateKey, publicKey } = await generateKeyPair('ES256', { extractable: true });
  const jwk = await exportJWK(publicKey);
  const withPrivate = create(accountId, { jwks: keySet(await exportJWK(privateKey)) });
  expect(await outcomeOf(withPrivate)).toBe('trusted_issuer_settings_invalid');
  const { trustedIssuer } = await create(accountId, { issuer: 'cluster', jwks: keySet({ ...jwk, use: 'enc', kid: 'e' }, jwk) });
  expect(JSON.parse(trustedIssuer?.jwks ?? '')).toEqual({ keys: [jwk] });
});

test('rejects the scopes and applications that a key cannot have', async () => {
  const accountId = await someAccountId(identity);
  const [foreign = ''] = identity.apps.createApplications(await someAccountId(identity), 1);
  expect(await outcomeOf(create(accountId, { scopes: ['all'] }))).toBe('api_key_settings_invalid');
  const restricted = create(accountId, { allApplications: false, applicationIds: [foreign] });
  expect(await outcomeOf(restricted)).toBe('application_not_found');
});

test('20 of an account may exist, also when they are created concurrently', async () => {
  const accountId = await someAccountId(identity);
  for (let i = 0; i < 18; i += 1) await create(accountId);
  const outcomes = await Promise.all(Array.from({ length: 4 }, () => outcomeOf(create(accountId))));
  expect(outcomes.sort()).toEqual(['done', 'done', ...Array(2).fill('trusted_issuers_limit_exceeded')]);
  expect(await refusalOf(create(accountId))).toMatchObject({ kind: 'forbidden', code: 'limit_exceeded' });
});

test('a trusted issuer of another account cannot be deleted', async () => {
  const accountId = await someAccountId(identity);
  const { trustedIssuer } = await create(accountId);
  const ref = { accountId, trustedIssuerId: trustedIssuer?.id ?? '' };
  const other = { ...ref, accountId: await someAccountId(identity) };
  for (const wrong of [other, { ...ref, trustedIssuerId: 'x' }])
    expect(await outcomeOf(trustedIssuers.deleteTrustedIssuer(wrong))).toBe('trusted_issuer_not_found');
  await trustedIssuers.deleteTrustedIssuer(ref);
  expect(await outcomeOf(trustedIssuers.deleteTrustedIssuer(ref))).toBe('trusted_issuer_not_found');
});
