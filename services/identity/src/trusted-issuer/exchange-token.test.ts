import { createHmac, randomUUID } from 'node:crypto';
import { auditReader } from '@latchkey/audit/testing/audit-reader';
import { refusalOf } from '@latchkey/testkit/refusal';
import { exportSPKI, importJWK } from 'jose';
import { describe, expect, test } from 'vitest';
import { MINUTE_MS, outcomeOf } from '../testing/identity.ts';
import { sendJson } from '../testing/issuer.ts';
import { createSomeKey, keyCredential, someAccountId } from '../testing/sample.ts';
import { AUDIENCE, CLAIMS, createSigningKey, openTokenIssuer, SUBJECT } from '../testing/token-issuer.ts';

const { issuer, identity, key, published, trust, claims, sign, exchange, nowS } = await openTokenIssuer();
const { apiKeys, authentication, trustedIssuers } = identity;

const use = (text: string) => outcomeOf(authentication.authenticate({ credential: keyCredential(text) }));
const keysOf = async (accountId: string) => (await apiKeys.listApiKeys({ accountId })).apiKeys;
const base64 = (value: unknown) => Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url');
/** Other claims for each test, so that no other account trusts them. */
let repositories = 0;
function someClaims() {
  repositories += 1;
  return { repository: `acme/app-${repositories}`, environment: 'production' };
}

/** A trusted issuer, and a token that it accepts. */
async function trustSome(change: Parameters<typeof trust>[0] = {}) {
  const own = someClaims();
  const trusted = await trust({ claims: JSON.stringify(own), ...change });
  return { ...trusted, own, token: (more: object = {}) => sign(claims({ ...own, ...more })) };
}

test('a token becomes a key with the rights of the trusted issuer, which expires', async () => {
  const { accountId, trusted, token } = await trustSome({ lifetimeSeconds: 60 });
  const { accessToken, expiresInSeconds, scopes } = await exchange(await token());
  expect({ expiresInSeconds, scopes }).toEqual({ expiresInSeconds: 60, scopes: ['files:upload'] });
  const { principal } = await authentication.authenticate({ credential: keyCredential(accessToken) });
  expect(principal).toMatchObject({ accountId, scopes, allApplications: true });
  const [listed] = await keysOf(accountId);
  expect(listed).toMatchObject({ name: 'GitHub', issuer: issuer.url, subject: SUBJECT, id: principal?.credentialId });
  const entries = await auditReader(identity.service.routes)(accountId);
  const changes = { issuer: issuer.url, subject: SUBJECT, trustedIssuerId: trusted.id };
  expect(entries.at(-1)).toMatchObject({ action: 'api_key.exchanged', subject: `api_key ${listed?.id}`, changes });
  identity.clock.advance(MINUTE_MS);
  expect(await use(accessToken)).toBe('api_key_expired');
  expect(await keysOf(accountId)).toEqual([]);
});

test('a key has only the requested scopes, which must be those of the trusted issuer', async () => {
  const { accountId, token } = await trustSome({ scopes: ['files:read', 'files:upload'] });
  const subjectToken = await token();
  const narrow = (...scopes: string[]) => trustedIssuers.exchangeToken({ subjectToken, scopes });
  for (const scopes of [['files:delete'], ['files:read', 'files:delete'], ['files:rea'], ['*']])
    expect(await outcomeOf(narrow(...scopes))).toBe('token_scope_invalid');
  expect(await keysOf(accountId)).toEqual([]);
  const { accessToken, scopes } = await narrow('files:read', 'files:read');
  expect(scopes).toEqual(['files:read']);
  const { principal } = await authentication.authenticate({ credential: keyCredential(accessToken) });
  expect(principal?.scopes).toEqual(['files:read']);
});

describe('a token is rejected, and makes no key,', () => {
  test.each<[string, object]>([
    ['of another audience', { aud: 'https://other.test' }],
    ['of another repository', { repository: 'acme/other' }],
    ['of another environment', { environment: 'staging' }],
    ['without a claim', { environment: undefined }],
    ['with a list that has the value', { environment: ['production'] }],
    ['whose claim begins with the value', { environment: 'production-eu' }],
    ['of another issuer', { iss: 'https://issuer.test' }],
  ])('%s', async (_what, change) => {
    const { accountId, token } = await trustSome();
    expect(await outcomeOf(exchange(await token(change)))).toBe('token_not_accepted');
    expect(await keysOf(accountId)).toEqual([]);
    expect(issuer.asked).toEqual([]);
  });

  test.each<[string, string, number]>([
    ['that expired', 'exp', 0],
    ['older than 10 minutes', 'iat', -601],
    ['issued in the future', 'iat', 61],
    ['not valid yet', 'nbf', 61],
  ])('%s', async (_what, name, fromNow) => {
    const { token } = await trustSome();
    expect(await outcomeOf(exchange(await token({ [name]: nowS() + fromNow })))).toBe('token_expired');
  });

  test.each(['exp', 'iat', 'sub', 'iss', 'aud'])('without %s', async (name) => {
    const { token } = await trustSome();
    expect(await outcomeOf(exchange(await token({ [name]: undefined })))).toBe('token_malformed');
  });

  test('without a signature, or signed with another key', async () => {
    const { own } = await trustSome();
    const payload = base64(claims(own));
    const [header = '', , signature] = (await sign(claims(own))).split('.');
    for (const token of [
      `${base64({ alg: 'none' })}.${payload}.`,
      `${base64({ alg: 'none', kid: key.jwk.kid })}.${payload}.${signature}`,
      `${header}.${payload}.`,
      `${header}.${payload}.${signature}`,
      await sign(claims(own), { ...(await createSigningKey()), jwk: key.jwk }),
    ])
      expect(await outcomeOf(exchange(token))).toBe('token_not_accepted');
  });

  test('signed by HMAC with the public key', async () => {
    const rsa = await createSigningKey('RS256');
    published.keys = [rsa.jwk];
    identity.clock.advance(6 * MINUTE_MS);
    const { own } = await trustSome();
    const pem = await exportSPKI((await importJWK(rsa.jwk)) as Parameters<typeof exportSPKI>[0]);
    for (const secret of [pem, pem.trim(), JSON.stringify(rsa.jwk), rsa.jwk.n ?? '']) {
      const input = `${base64({ alg: 'HS256', kid: rsa.jwk.kid })}.${base64(claims(own))}`;
      const token = `${input}.${createHmac('sha256', secret).update(input).digest('base64url')}`;
      expect(await outcomeOf(exchange(token))).toBe('token_not_accepted');
    }
    expect(await outcomeOf(exchange(await sign(claims(own), rsa)))).toBe('done');
    identity.clock.advance(6 * MINUTE_MS);
  });

  test('that is used again, also concurrently and with another form of its signature', async () => {
    const { accountId, token } = await trustSome();
    const text = await token();
    const outcomes = await Promise.all([text, text, text].map((one) => outcomeOf(exchange(one))));
    expect(outcomes.sort()).toEqual(['done', 'token_used', 'token_used']);
    // An ECDSA signature (r, s) is also valid as (r, n - s).
    const [header, payload, signature = ''] = text.split('.');
    const [r, s] = [signature, signature].map((whole, half) =>
      Buffer.from(whole, 'base64url').subarray(half * 32, half * 32 + 32),
    );
    const n = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;
    const other = Buffer.from((n - BigInt(`0x${s?.toString('hex')}`)).toString(16).padStart(64, '0'), 'hex');
    const twin = `${header}.${payload}.${Buffer.concat([r as Buffer, other]).toString('base64url')}`;
    expect(await outcomeOf(exchange(twin))).toBe('token_used');
    expect(await keysOf(accountId)).toHaveLength(1);
  });

  test.each(['', 'x', 'a.b.c', `${'a'.repeat(20_000)}.b.c`, `${base64({})}.${base64('null')}.x`])(
    'that is not a JWT',
    async (text) => {
      expect(await outcomeOf(exchange(text))).toBe('token_malformed');
    },
  );
});

describe('the keys of an issuer', () => {
  test('are asked for once in 30 seconds, and again for a token with a new key', async () => {
    identity.clock.advance(6 * MINUTE_MS);
    const { token, own } = await trustSome();
    expect(await outcomeOf(exchange(await token()))).toBe('done');
    const rotated = await createSigningKey();
    published.keys = [rotated.jwk];
    const withNewKey = () => sign(claims(own), rotated).then(exchange);
    expect(await outcomeOf(withNewKey())).toBe('token_not_accepted');
    identity.clock.advance(30_000);
    const unknown = await createSigningKey();
    for (let i = 0; i < 5; i += 1) await outcomeOf(sign(claims(own), unknown).then(exchange));
    expect(await outcomeOf(withNewKey())).toBe('done');
    expect(issuer.asked).toEqual(Array(2).fill(['/.well-known/openid-configuration', '/jwks']).flat());
    // The old key was withdrawn.
    expect(await outcomeOf(exchange(await token()))).toBe('token_not_accepted');
    identity.clock.advance(6 * MINUTE_MS);
  });

  test.each<[string, Record<string, (typeof issuer.answers)[string]>]>([
    ['that hangs', { '/.well-known/openid-configuration': () => undefined }],
    ['whose keys hang', { '/jwks': (_req, res) => void res.write('{"keys":[') }],
    [
      'that is another one',
      { '/.well-known/openid-configuration': (_req, res) => sendJson(res, 200, { issuer: 'https://x.test' }) },
    ],
    ['without keys', { '/jwks': (_req, res) => sendJson(res, 200, { keys: 'none' }) }],
  ])('of an issuer %s are unavailable, and not asked for again at once', async (_what, answers) => {
    const { trustedIssuers: own } = identity.connect({ oidcTimeoutMs: 200 });
    Object.assign(issuer.answers, answers);
    const { token } = await trustSome();
    const ask = async () => own.exchangeToken({ subjectToken: await token() });
    expect(await refusalOf(ask())).toMatchObject({ reason: 'trusted_issuer_unavailable', kind: 'unavailable' });
    const { length } = issuer.asked;
    expect(await outcomeOf(ask())).toBe('trusted_issuer_unavailable');
    expect(issuer.asked).toHaveLength(length);
  });

  test('are not read from an internal address, even if a public issuer names it', async () => {
    const { trustedIssuers: own } = identity.connect({ env: { TRUSTED_ISSUER_INTERNAL_HOSTS: '' } });
    const { token } = await trustSome();
    expect(await outcomeOf(own.exchangeToken({ subjectToken: await token() }))).toBe('trusted_issuer_unavailable');
    const other = issuer.url.replace('127.0.0.1', 'localhost');
    const { trustedIssuers: listed } = identity.connect();
    issuer.metadata = { jwks_uri: `${other}/jwks` };
    expect(await outcomeOf(listed.exchangeToken({ subjectToken: await token() }))).toBe('trusted_issuer_unavailable');
    expect(issuer.asked).toEqual(['/.well-known/openid-configuration']);
  });

  test('that cannot be imported accept nothing', async () => {
    const { trustedIssuers: own } = identity.connect();
    published.keys = [{ ...key.jwk, x: 'AAAA' }];
    const { token } = await trustSome();
    expect(await outcomeOf(own.exchangeToken({ subjectToken: await token() }))).toBe('token_not_accepted');
  });
});

test('pasted keys verify tokens of an issuer that is not asked', async () => {
  const own = await createSigningKey('RS256');
  const iss = 'https://kubernetes.default.svc';
  const { own: named } = await trustSome({ issuer: iss, jwks: JSON.stringify({ keys: [own.jwk] }) });
  const signed = (signer: typeof own) => sign(claims({ ...named, iss }), signer).then(exchange);
  expect(await outcomeOf(signed({ ...own, privateKey: (await createSigningKey('RS256')).privateKey }))).toBe(
    'token_not_accepted',
  );
  expect(await outcomeOf(signed(own))).toBe('done');
  expect(issuer.asked).toEqual([]);
});

describe('of several trusted issuers', () => {
  test('the one of the id is taken, and none without it', async () => {
    const first = await trustSome();
    const second = await trust({ claims: JSON.stringify(first.own), name: 'Another' });
    for (const audience of [undefined, AUDIENCE])
      expect(await refusalOf(exchange(await first.token(), audience))).toMatchObject({
        reason: 'token_target_ambiguous',
        code: 'invalid_target',
      });
    const { accessToken } = await exchange(await first.token(), second.trusted.id);
    const { principal } = await authentication.authenticate({ credential: keyCredential(accessToken) });
    expect(principal?.accountId).toBe(second.accountId);
  });

  test('an audience names one, also if it is a UUID', async () => {
    const audience = randomUUID();
    const { token } = await trustSome({ audience });
    expect(await outcomeOf(exchange(await token({ aud: audience }), audience))).toBe('done');
  });

  test('another audience names none, nor does the id of none', async () => {
    const { accountId, trusted, own, token } = await trustSome();
    const { id } = trusted;
    expect(await outcomeOf(exchange(await token(), 'https://other.test'))).toBe('token_target_invalid');
    expect(await outcomeOf(exchange(await token(), accountId))).toBe('token_target_invalid');
    // The id of one reports no more of what it accepts than its audience does.
    for (const other of [
      await token({ environment: 'staging' }),
      await sign(claims(own), { ...(await createSigningKey()), jwk: key.jwk }),
    ])
      expect(await outcomeOf(exchange(other, id))).toBe('token_not_accepted');
    expect(await outcomeOf(exchange(await token({ aud: [AUDIENCE, 'b'] }), AUDIENCE))).toBe('done');
    await trustedIssuers.deleteTrustedIssuer({ accountId, trustedIssuerId: id });
    expect(await outcomeOf(exchange(await token(), id))).toBe('token_target_invalid');
  });
});

describe('a key of a trusted issuer', () => {
  test('ends with it, on the next request, and no token makes another', async () => {
    const { accountId, trusted, token } = await trustSome();
    const [first, second] = [await exchange(await token()), await exchange(await token())];
    expect(await use(first.accessToken)).toBe('done');
    await trustedIssuers.deleteTrustedIssuer({ accountId, trustedIssuerId: trusted.id });
    for (const { accessToken } of [first, second]) expect(await use(accessToken)).toBe('api_key_revoked');
    expect(await outcomeOf(exchange(await token()))).toBe('token_not_accepted');
    const entries = await auditReader(identity.service.routes)(accountId);
    expect(entries.at(-1)).toMatchObject({ action: 'trusted_issuer.deleted', changes: { name: 'GitHub', revokedKeys: 2 } });
  });

  test('is not made once its trusted issuer was removed while its keys were read', async () => {
    const { trustedIssuers: own } = identity.connect();
    const asked = Promise.withResolvers<() => void>();
    issuer.answers['/jwks'] = (_req, res) => asked.resolve(() => sendJson(res, 200, published));
    const { accountId, trusted, token } = await trustSome();
    const exchanged = outcomeOf(own.exchangeToken({ subjectToken: await token() }));
    const answer = await asked.promise;
    await trustedIssuers.deleteTrustedIssuer({ accountId, trustedIssuerId: trusted.id });
    answer();
    expect(await exchanged).toBe('token_not_accepted');
    expect(await keysOf(accountId)).toEqual([]);
  });

  test('can be revoked, but neither changed nor rotated', async () => {
    const { accountId, token } = await trustSome();
    const { accessToken } = await exchange(await token());
    const ref = { accountId, apiKeyId: (await keysOf(accountId))[0]?.id ?? '' };
    const forever = { case: 'neverExpires' as const, value: true };
    for (const change of [() => apiKeys.updateApiKey({ ...ref, expiry: forever }), () => apiKeys.rotateApiKey(ref)])
      expect(await outcomeOf(change())).toBe('exchanged_api_key_unchangeable');
    await apiKeys.revokeApiKey(ref);
    expect(await use(accessToken)).toBe('api_key_revoked');
  });

  test('does not count towards the limit of keys, but 100 may be valid', async () => {
    const { accountId, token } = await trustSome();
    await exchange(await token());
    expect(await apiKeys.getApiKeyUsage({ accountId })).toMatchObject({ activeCount: 0n });
    await createSomeKey(identity, { accountId });
    await identity.db.query(
      `insert into api_key select (jsonb_populate_record(key, jsonb_build_object('id', gen_random_uuid(), 'public_id', 'more-' || i || key.id))).*
       from api_key key, generate_series(1, 99) i where account_id = $1 and trusted_issuer_id is not null`,
      [accountId],
    );
    const late = await token();
    expect(await refusalOf(exchange(late))).toMatchObject({ reason: 'exchanged_keys_limit_reached', kind: 'rate_limited' });
    await identity.db.query(`update api_key set expires_at = $2 where account_id = $1 and trusted_issuer_id is not null`, [
      accountId,
      identity.clock.now(),
    ]);
    expect(await outcomeOf(exchange(late))).toBe('done');
  });

  test('has only the applications that still exist', async () => {
    const accountId = await someAccountId(identity);
    const [gone = '', stays = ''] = identity.apps.createApplications(accountId, 2);
    const { token } = await trustSome({ accountId, allApplications: false, applicationIds: [gone, stays] });
    identity.apps.deleteApplication(accountId, gone, identity.clock.now());
    await exchange(await token());
    expect((await keysOf(accountId))[0]).toMatchObject({ allApplications: false, applicationIds: [stays] });
  });
});

test('claims are compared with their type', async () => {
  const { own } = await trustSome({ claims: JSON.stringify({ ...CLAIMS, repository: 'acme/typed', run: 1, ok: true }) });
  const typed = { ...own, ...CLAIMS, repository: 'acme/typed' };
  expect(await outcomeOf(exchange(await sign(claims({ ...typed, run: '1', ok: true }))))).toBe('token_not_accepted');
  expect(await outcomeOf(exchange(await sign(claims({ ...typed, run: 1, ok: true }))))).toBe('done');
});
