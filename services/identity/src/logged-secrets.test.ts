import { Writable } from 'node:stream';
import { createLogger } from '@latchkey/kit/log/logger';
import { afterAll, expect, test } from 'vitest';
import { MAIL_USER, startMailServer } from './testing/mail-server.ts';
import { createSomeKey, keyCredential, PASSWORD, present, sessionCredential, someSignUp } from './testing/sample.ts';
import { openTokenIssuer } from './testing/token-issuer.ts';
import { codeAt } from './testing/two-factor.ts';

/** A column of each table that every statement on it needs. */
const COLUMNS = {
  account: 'id',
  session: 'account_id',
  api_key: 'account_id',
  two_factor: 'account_id',
  recovery_code: 'account_id',
  mail: 'id',
  trusted_issuer: 'claims',
};

const server = await startMailServer();
afterAll(server.stop);
const { identity, settings, sign, claims } = await openTokenIssuer(server.env);

test('no log line holds a password, a token or a key, also when the database fails', async () => {
  let log = '';
  const destination = new Writable({
    write(chunk, _encoding, done) {
      log += chunk;
      done();
    },
  });
  const logger = createLogger('identity', 'trace', destination);
  const instance = identity.connect({ logger });
  const { accounts, apiKeys, authentication, credentials, twoFactor } = instance;
  await instance.service.start();
  const request = someSignUp();
  const { account, session } = await accounts.signUp(request);
  const accountId = present(account).id;
  const token = present(session).token;
  const { apiKey, plaintextKey } = await createSomeKey(instance, { accountId });
  const { secret } = await twoFactor.setUpTwoFactor({ accountId });
  const code = codeAt(secret, identity.clock.now());
  const { recoveryCodes } = await twoFactor.enableTwoFactor({ accountId, code });
  const [recoveryCode = '', another = ''] = recoveryCodes;
  await credentials.startPasswordReset(request);
  const [mail] = await server.waitForMails(request.email);
  await instance.trustedIssuers.createTrustedIssuer({ ...settings, accountId, code: another });
  const subjectTokens = [await sign(claims()), await sign(claims({ aud: 'another' }))];
  const { accessToken } = await instance.trustedIssuers.exchangeToken({ subjectToken: await sign(claims()) });
  const newPassword = `${PASSWORD} to come`;
  const use = async () => {
    const calls = [
      accounts.signUp(request),
      accounts.signIn(request),
      accounts.signIn({ ...request, password: `${PASSWORD} and more` }),
      accounts.signIn({ ...request, code, previousSessionToken: token }),
      accounts.signIn({ ...request, code: recoveryCode }),
      twoFactor.verifyTwoFactorCode({ accountId, code: recoveryCode }),
      twoFactor.disableTwoFactor({ accountId, password: `${PASSWORD} and more`, code: recoveryCode }),
      authentication.authenticate({ credential: keyCredential(plaintextKey), clientIp: '192.0.2.1' }),
      authentication.authenticate({ credential: keyCredential(`${plaintextKey}x`) }),
      authentication.authenticate({ credential: sessionCredential(token) }),
      credentials.changePassword({ accountId, password: `${PASSWORD} and more`, newPassword, code: recoveryCode }),
      ...subjectTokens.map((subjectToken) => instance.trustedIssuers.exchangeToken({ subjectToken })),
      credentials.startPasswordReset(request),
      credentials.resetPassword({ token: present(mail).token, newPassword }),
      apiKeys.revokeApiKey({ accountId, apiKeyId: apiKey.id }),
    ];
    await Promise.allSettled(calls);
  };
  await use();
  for (const [table, column] of Object.entries(COLUMNS)) {
    await identity.db.query(`alter table ${table} rename column ${column} to elsewhere`);
  }
  await use();
  for (const [table, column] of Object.entries(COLUMNS)) {
    await identity.db.query(`alter table ${table} rename column elsewhere to ${column}`);
  }
  expect(log).toContain('rpc failed');
  const csrfToken = present(session).csrfToken;
  const texts = [
    PASSWORD,
    token,
    csrfToken,
    plaintextKey,
    plaintextKey.slice(25),
    secret,
    ...recoveryCodes,
    present(mail).token,
    MAIL_USER.pass,
    accessToken,
    another,
    ...subjectTokens.map((text) => text.slice(-40)),
  ];
  for (const text of texts) expect(log).not.toContain(text);
  // Six digits alone are in many a number.
  expect(log).not.toMatch(new RegExp(`\\b${code}\\b`));
});
