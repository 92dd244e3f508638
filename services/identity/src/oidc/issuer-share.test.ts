import { createTestDatabase } from '@latchkey/testkit/database';
import { eventually } from '@latchkey/testkit/eventually';
import { testRedis } from '@latchkey/testkit/redis';
import { expect, onTestFinished, test } from 'vitest';
import { migrateIdentity, outcomeOf, startTestIdentity } from '../testing/identity.fixture.ts';
import { sendJson, startTestIssuer } from '../testing/issuer.fixture.ts';
import { comeBack } from '../testing/oidc-flow.fixture.ts';

/** Half of the 64 calls to all issuers. */
const SHARE = 32;
const WAITING_MAX = 64;
const REJECTED = 4;

test('an issuer that does not answer its calls blocks sign-in at no other issuer', async () => {
  const [slow, quick] = await Promise.all([startTestIssuer(), startTestIssuer()]);
  const database = await createTestDatabase({ schema: 'identity', migrate: migrateIdentity });
  const identity = await startTestIdentity({ databaseUrl: database.url, redisUrl: (await testRedis()).url });
  onTestFinished(async () => {
    await identity.stop();
    await database.drop();
    await Promise.all([slow.stop(), quick.stop()]);
  });
  const instance = await identity.connect({
    env: { ...slow.env('slow'), ...quick.env('quick'), OIDC_ISSUERS: 'slow,quick' },
  });
  const backs = Array.from({ length: SHARE + WAITING_MAX + REJECTED }, () => comeBack(instance, slow, { issuerName: 'slow' }));
  const answers: Array<() => void> = [];
  slow.answers['/token'] = (_req, res) => void answers.push(() => sendJson(res, 400, { error: 'invalid_grant' }));
  const ended: string[] = [];
  const callbacks = (await Promise.all(backs)).map(async (back) => {
    ended.push(await outcomeOf(instance.oidc.finishOidc(back)));
  });
  await eventually(() => answers.length >= SHARE && ended.length >= REJECTED);

  quick.claims = { ...quick.claims, email: 'quick@example.test', email_verified: true };
  const back = await comeBack(instance, quick, { issuerName: 'quick' });
  expect(await outcomeOf(instance.oidc.finishOidc(back))).toBe('done');
  expect(answers).toHaveLength(SHARE);
  expect(ended).toEqual(Array(REJECTED).fill('oidc_issuer_unavailable'));

  delete slow.answers['/token'];
  for (const answer of answers) answer();
  await Promise.all(callbacks);
  expect(ended.filter((outcome) => outcome === 'oidc_refused').length).toBeGreaterThanOrEqual(SHARE);
});
