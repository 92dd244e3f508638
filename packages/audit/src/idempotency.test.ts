import { randomUUID } from 'node:crypto';
import { createClient } from '@connectrpc/connect';
import { createLogger } from '@latchkey/kit/log/logger';
import { createDirectTransport } from '@latchkey/kit/rpc/client/direct-transport';
import { rpcRoute } from '@latchkey/kit/rpc/route';
import { ApplicationService } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { eventually } from '@latchkey/testkit/eventually';
import { statementsOf } from '@latchkey/testkit/postgres/statements';
import { sql } from 'kysely';
import { expect, it, onTestFinished, vi } from 'vitest';
import { SERVICE_ORIGIN } from './actor.ts';
import { deriveResultKey, withIdempotency } from './idempotency.ts';
import { recordAudit } from './record.ts';
import { createAuditSweeper } from './retention.ts';
import { openTestAuditLog } from './testing/audit-table.ts';
import { runTransaction } from './transaction.ts';

const log = await openTestAuditLog();

/** A service that creates applications, after `wait`, and counts them. */
function open({ wait = async () => undefined as unknown, holdsSecret = false } = {}) {
  const create = vi.fn(async (accountId: string, name: string) =>
    runTransaction(log.db, async (tx) => {
      await wait();
      if (name === 'refused') throw new Error('refused');
      await recordAudit(tx, SERVICE_ORIGIN, {
        accountId,
        action: 'account.created',
        subject: { kind: 'account', id: accountId },
      });
      return { applicationId: randomUUID() };
    }),
  );
  const route = rpcRoute(ApplicationService, {
    createApplication: ({ accountId, name }: { accountId: string; name: string }) => create(accountId, name),
  } as unknown as Parameters<typeof rpcRoute<typeof ApplicationService>>[1]);
  const options = { sealingKey: deriveResultKey('secret'), ...(holdsSecret && { secrets: new Set(['createApplication']) }) };
  const transport = createDirectTransport([withIdempotency(route, options)], createLogger('test', 'silent'));
  const client = createClient(ApplicationService, transport);
  const call = async (accountId: string, name: string, headers: Record<string, string> = {}) => {
    let isReplayed = false;
    const onHeader = (header: Headers) => {
      isReplayed = header.has('idempotency-replayed');
    };
    const { applicationId } = await client.createApplication({ accountId, name }, { headers, onHeader });
    return { applicationId, isReplayed };
  };
  const effects = async (accountId: string) =>
    (await log.pool.query('select from audit_entry where account_id = $1', [accountId])).rowCount;
  return { call, effects };
}

const keyed = (key: string = randomUUID()) => ({ 'idempotency-key': key });
const reasonOf = (call: Promise<unknown>) =>
  call.then(
    () => 'none',
    (err) => err.cause?.reason ?? err.rawMessage,
  );

it('a repeated call returns the first result, and costs two statements more', async () => {
  const { call, effects } = open();
  const [accountId, headers] = [randomUUID(), keyed()];
  let first: unknown;
  const keyedStatements = await statementsOf(async () => {
    first = await call(accountId, 'x', headers);
  });
  const plainStatements = await statementsOf(() => call(randomUUID(), 'x'));
  expect(keyedStatements.length - plainStatements.length).toBe(2);
  expect(await call(accountId, 'x', headers)).toEqual({ ...(first as object), isReplayed: true });
  expect(await effects(accountId)).toBe(1);
});

it('concurrent calls have one effect, and the key is free once the first has failed', async () => {
  const gate = Promise.withResolvers<void>();
  onTestFinished(() => gate.resolve());
  const begun = Promise.withResolvers<void>();
  const wait = () => {
    begun.resolve();
    return gate.promise;
  };
  const { call, effects } = open({ wait });
  const [accountId, headers] = [randomUUID(), keyed()];
  const first = call(accountId, 'refused', headers);
  // Its transaction has the lock from here on.
  await begun.promise;
  expect(await reasonOf(call(accountId, 'x', headers))).toMatch('idempotency_in_progress');
  gate.resolve();
  await expect(first).rejects.toThrow();
  const all = await Promise.allSettled(Array.from({ length: 20 }, () => call(accountId, 'x', headers)));
  const ids = all.flatMap((end) => (end.status === 'fulfilled' ? [end.value.applicationId] : []));
  expect([new Set(ids).size, await effects(accountId)]).toEqual([1, 1]);
});

it('returns the result that another call stored since its look-up, and has no effect', async () => {
  let beforeEffect: () => Promise<unknown> = async () => undefined;
  const { call, effects } = open({ wait: () => beforeEffect() });
  const [accountId, headers] = [randomUUID(), keyed()];
  await log.pool.query('delete from idempotency_record');
  const first = await call(accountId, 'x', headers);
  const { rows } = await log.pool.query('delete from idempotency_record returning *');
  const { id, fingerprint, credential, result, expires_at } = rows[0];
  beforeEffect = () =>
    log.pool.query('insert into idempotency_record values ($1, $2, $3, $4, $5) on conflict do nothing', [
      ...[id, fingerprint, credential, result, expires_at],
    ]);
  expect(await call(accountId, 'x', headers)).toEqual({ ...first, isReplayed: true });
  expect(await effects(accountId)).toBe(1);
});

it('rejects another message with the same key, and an invalid key', async () => {
  const { call } = open();
  const [accountId, headers] = [randomUUID(), keyed()];
  await call(accountId, 'x', headers);
  expect(await reasonOf(call(accountId, 'y', headers))).toMatch('idempotency_key_reused');
  expect(await reasonOf(call(accountId, 'x', keyed('a'.repeat(256))))).toMatch('idempotency_key_invalid');
});

it('replays a secret only to the credential that got it, and stores none in clear', async () => {
  const { call } = open({ holdsSecret: true });
  const [accountId, headers] = [randomUUID(), keyed()];
  const as = (id: string, address: string) => ({ ...headers, 'x-latchkey-actor': `session ${id} ${address}` });
  const [own, other] = [randomUUID(), randomUUID()];
  const { applicationId } = await call(accountId, 'x', as(own, '127.0.0.1'));
  expect(await call(accountId, 'x', as(own, '127.0.0.2'))).toEqual({ applicationId, isReplayed: true });
  expect(await reasonOf(call(accountId, 'x', as(other, '127.0.0.1')))).toMatch('idempotency_key_reused');
  const { rows } = await log.pool.query('select result, expires_at - now() as kept from idempotency_record');
  expect(rows.some(({ result }) => result.includes(applicationId))).toBe(false);
});

it('runs a call again once its result has expired, and deletes expired results', async () => {
  const { call, effects } = open();
  const [accountId, headers] = [randomUUID(), keyed()];
  await call(accountId, 'x', headers);
  const expire = () => sql`update idempotency_record set expires_at = now() - interval '1 second'`.execute(log.db);
  await expire();
  expect(await call(accountId, 'x', headers)).toMatchObject({ isReplayed: false });
  expect(await effects(accountId)).toBe(2);
  await expire();
  const sweeper = createAuditSweeper({ ...log, retentionDays: 90, logger: createLogger('shop', 'silent') });
  onTestFinished(() => sweeper.stop());
  sweeper.start();
  await eventually(async () => expect((await log.pool.query('select from idempotency_record')).rowCount).toBe(0));
});
