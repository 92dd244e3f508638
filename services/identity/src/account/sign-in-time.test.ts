import { randomUUID } from 'node:crypto';
import { createTestDatabase, type TestDatabase } from '@latchkey/testkit/database';
import { testRedis } from '@latchkey/testkit/redis';
import { statementsOf } from '@latchkey/testkit/statements';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { migrateIdentity, outcomeOf, startTestIdentity, type TestIdentity } from '../testing/identity.fixture.ts';
import { PASSWORD, signUpSomeone } from '../testing/sample.fixture.ts';
import { guardSomeone } from '../testing/two-factor.fixture.ts';
import { createPasswords, type Passwords } from './password.ts';

/** That nobody learns by the time of an answer which emails have accounts: the same work is done for each (decisions 4). */
let database: TestDatabase;
let identity: TestIdentity;

beforeAll(async () => {
  database = await createTestDatabase({ schema: 'identity', migrate: migrateIdentity });
  identity = await startTestIdentity({ databaseUrl: database.url, redisUrl: (await testRedis()).url });
});
afterAll(async () => {
  await identity.stop();
  await database.drop();
});

test('whatever is wrong with email and password, one password is verified and the same is asked of the database', async () => {
  const real = createPasswords({ atOnce: 2, waitingMax: 10 });
  let verified = 0;
  const verify: Passwords['verify'] = (stored, password) => {
    verified += 1;
    return real.verify(stored, password);
  };
  const { accounts } = await identity.connect({ passwords: { ...real, verify } });
  const { account } = await signUpSomeone(identity);
  const guarded = await guardSomeone(identity);
  const byIssuer = (await signUpSomeone(identity)).account;
  await identity.db.query('update account set password_hash = null where id = $1', [byIssuer.id]);
  const wrong = `${PASSWORD}!`;
  const attempts = {
    'an unknown email': { email: `${randomUUID()}@example.test`, password: PASSWORD },
    'an unknown email and a code': { email: `${randomUUID()}@example.test`, password: PASSWORD, code: '123456' },
    'text that is no email': { email: 'nobody', password: PASSWORD },
    'a wrong password': { email: account.email, password: wrong },
    'a wrong password and a code': { email: account.email, password: wrong, code: '123456' },
    'a wrong password where there is a second factor': { email: guarded.account.email, password: wrong },
    'a wrong password and the right code': { email: guarded.account.email, password: wrong, code: guarded.code() },
    'a password where the account has none': { email: byIssuer.email, password: PASSWORD },
  };
  const work = new Map<string, unknown>();
  for (const [what, attempt] of Object.entries(attempts)) {
    verified = 0;
    let outcome = '';
    const statements = await statementsOf(async () => {
      outcome = await outcomeOf(accounts.signIn(attempt));
    });
    work.set(what, { outcome, verified, statements: statements.map(({ text }) => text) });
  }
  const [first] = work.values();
  expect(first).toEqual({
    outcome: 'sign_in_failed',
    verified: 1,
    statements: [expect.stringContaining(' from "account" ')],
  });
  for (const [what, done] of work) expect(done, what).toEqual(first);
});

test('to verify a password against no account takes the processor as long as against one', async () => {
  const passwords = createPasswords({ atOnce: 1, waitingMax: 0 });
  const hash = await passwords.hash(PASSWORD);
  const times = { wrong: [] as number[], unknown: [] as number[] };
  for (let i = 0; i < 15; i += 1) {
    for (const [of, stored] of [
      ['wrong', hash],
      ['unknown', undefined],
    ] as const) {
      const before = process.cpuUsage();
      await passwords.verify(stored, `${PASSWORD}!`);
      const { user, system } = process.cpuUsage(before);
      times[of].push(user + system);
    }
  }
  const ratio = median(times.unknown) / median(times.wrong);
  // Less work by half, or none, would be far out of these; other work on the machine is not.
  expect(ratio).toBeGreaterThan(0.6);
  expect(ratio).toBeLessThan(1.67);
});

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}
