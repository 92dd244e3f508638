import { timestampDate } from '@bufbuild/protobuf/wkt';
import { ACTOR_HEADER } from '@latchkey/audit/actor';
import { auditReader } from '@latchkey/audit/testing/audit-reader';
import { expect, test } from 'vitest';
import { DAY_MS, MINUTE_MS, openTestIdentity, outcomeOf } from '../testing/identity.ts';
import { PASSWORD, present, sessionCredential, signUpSomeone, someSignUp } from '../testing/sample.ts';

const identity = await openTestIdentity();

const from = (address: string) => ({ headers: { [ACTOR_HEADER]: `anonymous - ${address}` } });
const use = (token: string, clientIp = '', userAgent = '') =>
  identity.authentication.authenticate({ credential: sessionCredential(token), clientIp, userAgent });
const list = async (accountId: string, sessionId = '') =>
  (await identity.accounts.listSessions({ accountId, sessionId })).sessions;
const idOf = async (token: string) => present((await use(token)).principal).credentialId;

test('a session is listed with the address and the client of its sign-in, then of its last use', async () => {
  const request = { ...someSignUp(), userAgent: 'first/1.0' };
  const { account, session } = await identity.accounts.signUp(request, from('192.0.2.1'));
  const [{ id: accountId }, { token }] = [present(account), present(session)];
  const seen = async () => (await list(accountId)).map(({ lastUsedIp, userAgent }) => [lastUsedIp, userAgent]);
  expect(await seen()).toEqual([['192.0.2.1', 'first/1.0']]);
  await use(token, '192.0.2.1', 'second/1.0');
  expect(await seen()).toEqual([['192.0.2.1', 'first/1.0']]);
  identity.clock.advance(MINUTE_MS);
  await use(token, '192.0.2.1', 'second/1.0');
  expect(await seen()).toEqual([['192.0.2.1', 'second/1.0']]);
  await use(token, '192.0.2.2', '');
  expect(await seen()).toEqual([['192.0.2.2', 'second/1.0']]);
  const [{ id, createdAt, lastUsedAt }] = (await list(accountId)) as [Awaited<ReturnType<typeof list>>[number]];
  expect([id, timestampDate(present(lastUsedAt))]).toEqual([await idOf(token), identity.clock.now()]);
  expect(timestampDate(present(createdAt)).getTime()).toBe(identity.clock.now().getTime() - MINUTE_MS);
});

test('the client is stored as at most 256 visible characters', async () => {
  for (const [userAgent, stored] of [
    ['a'.repeat(16_000), 'a'.repeat(256)],
    ['\0x\u001b[31m\u202ey\u200b', 'x[31my'],
    ['\u0085 \u200b', undefined],
  ] as const) {
    const { account } = await identity.accounts.signUp({ ...someSignUp(), userAgent });
    expect((await list(present(account).id))[0]?.userAgent).toBe(stored);
  }
});

test('up to 100 open sessions are listed, the calling one first, and none that has ended', async () => {
  const { account, session } = await signUpSomeone(identity);
  const current = await idOf(session.token);
  const now = identity.clock.now().getTime();
  await identity.db.query(
    `insert into session (id, account_id, token_hash, created_at, last_seen_at, expires_at)
     select gen_random_uuid(), $1::uuid, sha256(i::text::bytea), $2::timestamptz, $2::timestamptz + i * interval '1 ms', $3::timestamptz from generate_series(1, 120) i
     union all select gen_random_uuid(), $1, sha256('0'), $4::timestamptz, $4, $3 + interval '1 day'`,
    [account.id, new Date(now), new Date(now + DAY_MS), new Date(now - 6 * DAY_MS)],
  );
  const listed = await list(account.id, current);
  expect([listed.length, listed[0]?.id]).toEqual([100, current]);
  const times = listed.slice(1).map(({ lastUsedAt }) => timestampDate(present(lastUsedAt)).getTime() - now);
  expect(times).toEqual(Array.from({ length: 99 }, (_, i) => 120 - i));
  // The 120 have expired, so the limit does not hide the one that is idle.
  identity.clock.advance(DAY_MS);
  expect((await list(account.id, current)).map(({ id }) => id)).toEqual([current]);
  for (const text of ['', 'x']) expect(await list(text, text)).toEqual([]);
});

test('one session of the account ends on the next request, with its epoch, and no other', async () => {
  const { account, session } = await signUpSomeone(identity);
  const other = await signUpSomeone(identity);
  const second = present((await identity.accounts.signIn({ email: account.email, password: PASSWORD })).session);
  const { principal, epochKey, epoch } = await use(second.token);
  const sessionId = present(principal).credentialId;
  for (const accountId of [other.account.id, '', 'x'])
    expect(await outcomeOf(identity.accounts.endSession({ accountId, sessionId }))).toBe('session_not_found');
  for (const id of ['', 'x', account.id])
    expect(await outcomeOf(identity.accounts.endSession({ accountId: account.id, sessionId: id }))).toBe('session_not_found');
  expect(await identity.redis.get(epochKey)).toBe(epoch);
  await identity.accounts.endSession({ accountId: account.id, sessionId });
  expect(await identity.redis.get(epochKey)).toBeNull();
  expect([await outcomeOf(use(second.token)), await outcomeOf(use(session.token))]).toEqual(['session_invalid', 'done']);
  expect(await outcomeOf(identity.accounts.endSession({ accountId: account.id, sessionId }))).toBe('session_not_found');
  const entries = await auditReader(identity.service.routes)(account.id);
  expect(entries.at(-1)).toMatchObject({ action: 'account.session_ended', changes: { sessionId } });
});
