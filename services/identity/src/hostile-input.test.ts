import { refusalOf } from '@latchkey/testkit/refusal';
import { expect, test } from 'vitest';
import { openTestIdentity } from './testing/identity.ts';
import { createSomeKey, keyCredential, OPEN_KEY, PASSWORD, sessionCredential, someSignUp } from './testing/sample.ts';
import { guardSomeone } from './testing/two-factor.ts';

const identity = await openTestIdentity({ SMTP_URL: 'smtp://127.0.0.1:1', MAIL_FROM: 'latchkey@example.test' });

/** Text that has broken services before. */
const TEXTS: Array<[string, string]> = [
  ['nothing', ''],
  ['a NUL', '\0'],
  ['half a surrogate pair', '\ud800'],
  ['SQL', "' or 1=1 --"],
  ['a prototype', '__proto__'],
  ['100,000 characters', 'x'.repeat(100_000)],
  ['40 characters beyond the first plane', '😀'.repeat(40)],
  ['a UUID and a NUL', '01a1fa3f-b3c3-743f-b08f-2741f24621e5\0'],
];

const ISSUER = { issuer: 'https://issuer.test', audience: 'latchkey', claims: '{"sub":"a"}', lifetimeSeconds: 60 };
const TRUSTED = { ...OPEN_KEY, ...ISSUER };

/** An unsigned token. */
const toToken = (claims: object) => {
  const payload = Buffer.from(JSON.stringify({ ...claims, iat: 1, exp: 2 })).toString('base64url');
  return `e30.${payload}.e30`;
};

test.each(TEXTS)('%s in any field is accepted or rejected by a rule', async (_what, text) => {
  const { accounts, apiKeys, authentication, credentials, trustedIssuers, twoFactor } = identity;
  const guarded = await guardSomeone(identity);
  const { accountId, apiKey, plaintextKey } = await createSomeKey(identity);
  const ref = { accountId, apiKeyId: apiKey.id };
  const ids = { applicationIds: [text] };
  const calls = [
    accounts.signUp({ ...someSignUp(), username: text }),
    accounts.signUp({ ...someSignUp(), email: text }),
    accounts.signUp({ ...someSignUp(), password: text }),
    accounts.signIn({ email: text, password: PASSWORD }),
    accounts.signIn({ email: 'someone@example.test', password: text }),
    guarded.signIn(text),
    accounts.signIn({ email: guarded.account.email, password: PASSWORD, previousSessionToken: text }),
    accounts.signOutEverywhere({ accountId: text }),
    twoFactor.setUpTwoFactor({ accountId: text }),
    twoFactor.enableTwoFactor({ accountId: text, code: text }),
    twoFactor.enableTwoFactor({ accountId, sessionId: text, code: text }),
    twoFactor.disableTwoFactor({ accountId: text, password: PASSWORD, code: text }),
    twoFactor.disableTwoFactor({ accountId: guarded.accountId, sessionId: text, password: text, code: text }),
    twoFactor.verifyTwoFactorCode({ accountId: text, code: text }),
    twoFactor.verifyTwoFactorCode({ accountId: guarded.accountId, code: text }),
    accounts.signOut({ accountId: text, sessionId: apiKey.id }),
    accounts.signOut({ accountId, sessionId: text }),
    accounts.getAccount({ accountId: text }),
    credentials.changePassword({ accountId: text, password: PASSWORD, newPassword: PASSWORD }),
    credentials.changePassword({ accountId, sessionId: text, password: PASSWORD, newPassword: text }),
    credentials.changePassword({ accountId: guarded.accountId, password: PASSWORD, newPassword: PASSWORD, code: text }),
    credentials.startPasswordReset({ email: text }),
    credentials.resetPassword({ token: text, newPassword: PASSWORD }),
    credentials.startEmailChange({ accountId, email: text, password: PASSWORD }),
    credentials.startEmailChange({ accountId, email: 'someone@example.test', password: text }),
    credentials.confirmEmailChange({ accountId: text, token: 'x'.repeat(32) }),
    credentials.confirmEmailChange({ accountId, token: text }),
    apiKeys.listApiKeys({ accountId: text }),
    apiKeys.listApiKeyPage({ accountId: text, page: 1 }),
    apiKeys.listApiKeyPage({ accountId, search: text, page: 1 }),
    apiKeys.createApiKey({ ...OPEN_KEY, accountId: text }),
    apiKeys.createApiKey({ ...OPEN_KEY, accountId, name: text }),
    apiKeys.createApiKey({ ...OPEN_KEY, accountId, scopes: [text] }),
    apiKeys.createApiKey({ ...OPEN_KEY, accountId, ...ids, allApplications: false }),
    apiKeys.updateApiKey({ ...ref, accountId: text }),
    apiKeys.updateApiKey({ ...ref, apiKeyId: text }),
    apiKeys.updateApiKey({ ...ref, name: text }),
    apiKeys.updateApiKey({ ...ref, scopes: { scopes: [text] } }),
    apiKeys.updateApiKey({ ...ref, allApplications: false, applicationIds: ids }),
    apiKeys.revokeApiKey({ ...ref, accountId: text }),
    apiKeys.revokeApiKey({ ...ref, apiKeyId: text }),
    trustedIssuers.listTrustedIssuers({ accountId: text }),
    ...['name', 'issuer', 'audience', 'claims', 'jwks'].map((field) =>
      trustedIssuers.createTrustedIssuer({ ...TRUSTED, accountId, [field]: text }),
    ),
    trustedIssuers.createTrustedIssuer({ ...TRUSTED, accountId, claims: JSON.stringify({ sub: text }) }),
    trustedIssuers.createTrustedIssuer({ ...TRUSTED, accountId: text }),
    trustedIssuers.deleteTrustedIssuer({ accountId, trustedIssuerId: text }),
    trustedIssuers.exchangeToken({ subjectToken: text, audience: text }),
    trustedIssuers.exchangeToken({ subjectToken: toToken({ aud: text, iss: text, sub: text, [text]: text }), audience: text }),
    authentication.authenticate({ credential: keyCredential(text) }),
    authentication.authenticate({ credential: sessionCredential(text) }),
    authentication.authenticate({ credential: keyCredential(plaintextKey), clientIp: text }),
  ];
  // Any other error than a rejection by a rule makes this throw.
  const kindOf = (call: Promise<unknown>) =>
    call.then(
      () => 'done',
      async () => (await refusalOf(call)).kind,
    );
  for (const kind of await Promise.all(calls.map(kindOf))) {
    expect(['done', 'malformed', 'invalid', 'unauthenticated', 'not_found']).toContain(kind);
  }
});
