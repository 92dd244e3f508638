import { Code, ConnectError } from '@connectrpc/connect';
import { ACTOR_HEADER } from '@latchkey/audit/actor';
import { auditReader } from '@latchkey/audit/testing/audit-reader';
import { commonErrors, toConnectError } from '@latchkey/kit/errors/errors';
import { eventually } from '@latchkey/testkit/eventually';
import { afterEach, expect, test } from 'vitest';
import { DAY_MS, MINUTE_MS, openTestIdentity, outcomeOf } from '../testing/identity.ts';
import { createSomeKey, keyCredential, PASSWORD, present, sessionCredential, signUpSomeone } from '../testing/sample.ts';
import { sessionIdOf } from '../testing/two-factor.ts';

const identity = await openTestIdentity();
afterEach(() => {
  identity.apps.failure = undefined;
  identity.apps.pause = undefined;
});

const remove = (request: object, options = {}) => outcomeOf(identity.accounts.deleteAccount(request, options));
const authenticate = (credential: ReturnType<typeof keyCredential> | ReturnType<typeof sessionCredential>) =>
  identity.authentication.authenticate({ credential });

async function listed() {
  const { accounts } = await identity.accounts.listDeletedAccounts({});
  return accounts.map(({ accountId }) => accountId);
}

/** Starts another instance, whose sweep runs immediately. */
async function sweep(until: () => Promise<void>) {
  const { service } = identity.connect();
  await service.start();
  await eventually(until).finally(service.stop);
}

test('the sessions and keys of a deleted account are rejected on the next request, and its names are free', async () => {
  const { account, session } = await signUpSomeone(identity);
  const { plaintextKey } = await createSomeKey(identity, { accountId: account.id });
  const bystander = await signUpSomeone(identity);
  const credentials = [sessionCredential(session.token), keyCredential(plaintextKey)];
  const epochs = await Promise.all(credentials.map(async (one) => (await authenticate(one)).epochKey));
  identity.apps.createApplications(account.id, 3);
  const actor = `session ${await sessionIdOf(identity, session)} 192.0.2.1`;
  expect(await remove({ accountId: account.id, password: PASSWORD }, { headers: { [ACTOR_HEADER]: actor } })).toBe('done');
  for (const key of epochs) expect(await identity.redis.get(key)).toBeNull();
  expect(await Promise.all(credentials.map((one) => outcomeOf(authenticate(one))))).toEqual([
    'session_invalid',
    'api_key_invalid',
  ]);
  expect([identity.apps.countOf(account.id), new Set(identity.apps.actors)]).toEqual([0, new Set([actor])]);
  const { username, email } = account;
  expect(await outcomeOf(identity.accounts.signIn({ email, password: PASSWORD }))).toBe('sign_in_failed');
  expect(await outcomeOf(identity.accounts.getAccount({ accountId: account.id }))).toBe('account_not_found');
  expect(await outcomeOf(identity.accounts.signUp({ username, email, password: PASSWORD }))).toBe('done');
  expect(await outcomeOf(authenticate(sessionCredential(bystander.session.token)))).toBe('done');
  expect((await auditReader(identity.service.routes)(account.id)).at(-1)).toMatchObject({
    action: 'account.deleted',
    changes: {},
  });
  for (const accountId of [account.id, '', 'x'])
    expect(await remove({ accountId, password: PASSWORD })).toBe('account_not_found');
});

test('applications that remain after a failure of apps, or are created late, are deleted by the sweeper', async () => {
  const { account } = await signUpSomeone(identity);
  identity.apps.createApplications(account.id, 2);
  identity.apps.failure = new Error('not now');
  expect(await remove({ accountId: account.id, password: PASSWORD })).toBe('done');
  expect(identity.apps.countOf(account.id)).toBe(2);
  identity.apps.failure = undefined;
  const gone = async () => expect(identity.apps.countOf(account.id)).toBe(0);
  await sweep(gone);
  identity.apps.createApplications(account.id, 1);
  await sweep(gone);
  identity.clock.advance(5 * MINUTE_MS);
  const pending = 'select from deleted_account where completed_at is null';
  await sweep(async () => expect((await identity.db.query(pending)).rowCount).toBe(0));
  expect(await listed()).toContain(account.id);
  identity.clock.advance(30 * DAY_MS);
  await sweep(async () => expect(await listed()).toEqual([]));
});

test('the response does not wait for a slow apps service until its deadline, and the applications are deleted', async () => {
  const { account } = await signUpSomeone(identity);
  identity.apps.createApplications(account.id, 2);
  const { promise, resolve } = Promise.withResolvers<void>();
  identity.apps.pause = promise;
  const deleted = { accountId: account.id, password: PASSWORD };
  expect(await remove(deleted, { timeoutMs: 1_000 })).toBe('done');
  expect(identity.apps.countOf(account.id)).toBe(2);
  resolve();
  await eventually(() => expect(identity.apps.countOf(account.id)).toBe(0));
});

test('a deletion whose outcome is unknown, as apps was killed during it, is repeated within moments', async () => {
  await identity.db.query('update deleted_account set completed_at = now()');
  const { service, accounts } = identity.connect();
  await service.start();
  const { account } = await signUpSomeone(identity);
  identity.apps.createApplications(account.id, 1);
  const calls = identity.apps.actors.length;
  identity.apps.failure = toConnectError(commonErrors.outcome_unknown());
  expect(await outcomeOf(accounts.deleteAccount({ accountId: account.id, password: PASSWORD }))).toBe('done');
  // By the request, then by the sweeper.
  await eventually(() => identity.apps.actors.length >= calls + 2);
  identity.apps.failure = undefined;
  await eventually(() => expect(identity.apps.countOf(account.id)).toBe(0));
});

test('applications of a deleted account are deleted within moments of the return of the apps service', async () => {
  const { service, accounts } = identity.connect();
  await service.start();
  const { account } = await signUpSomeone(identity);
  identity.apps.createApplications(account.id, 2);
  // More than a batch, all of them earlier.
  await identity.db.query(
    `insert into deleted_account select gen_random_uuid(), $1::timestamptz - i * interval '1 s' from generate_series(1, 110) i`,
    [identity.clock.now()],
  );
  identity.apps.failure = new ConnectError('not now', Code.Unavailable);
  expect(await outcomeOf(accounts.deleteAccount({ accountId: account.id, password: PASSWORD }))).toBe('done');
  identity.apps.failure = undefined;
  await eventually(() => expect(identity.apps.countOf(account.id)).toBe(0));
});

test('deletions are listed page by page, each once', async () => {
  await identity.db.query(
    `insert into deleted_account select gen_random_uuid(), $1::timestamptz + (i / 300) * interval '1 ms', now() from generate_series(1, 1100) i`,
    [identity.clock.now()],
  );
  const seen: string[] = [];
  let page = (await identity.accounts.listDeletedAccounts({})).accounts;
  for (; page.length > 0; ) {
    seen.push(...page.map(({ accountId }) => accountId));
    const { deletedAt, accountId: afterAccountId } = present(page.at(-1));
    page = (await identity.accounts.listDeletedAccounts({ deletedSince: present(deletedAt), afterAccountId })).accounts;
  }
  const { rowCount } = await identity.db.query('select from deleted_account');
  expect([seen.length, new Set(seen).size]).toEqual([rowCount, rowCount]);
  const listSince = async (seconds: bigint) =>
    (await identity.accounts.listDeletedAccounts({ deletedSince: { seconds, nanos: 0 } })).accounts.length;
  const soon = BigInt(Math.floor(identity.clock.now().getTime() / 1_000) + 60);
  expect(await Promise.all([soon, 2n ** 63n - 1n, -(2n ** 63n)].map(listSince))).toEqual([0, 0, 500]);
});
