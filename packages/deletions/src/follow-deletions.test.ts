import { randomUUID } from 'node:crypto';
import { timestampDate } from '@bufbuild/protobuf/wkt';
import { Code, createRouterTransport } from '@connectrpc/connect';
import { createLogger } from '@latchkey/kit/log/logger';
import { createQueueProducer } from '@latchkey/kit/queue/producer';
import { ApplicationService, type ListDeletedApplicationsRequest } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { eventually } from '@latchkey/testkit/eventually';
import { testRedis } from '@latchkey/testkit/redis/redis';
import { createTestClock } from '@latchkey/testkit/values/test-clock';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type FollowOptions, followDeletions } from './follow-deletions.ts';

const MINUTE_MS = 60_000;
const logger = createLogger('test', 'silent');

const application = (applicationId: string) => ({ applicationId, accountId: 'account' });

/** A follower of a fake apps service, which has these pages of deletions. */
function open(pages: string[][], overrides: Partial<FollowOptions> = {}) {
  const clock = createTestClock();
  const startedAt = clock.now().getTime();
  const state = { forgotten: [] as string[], reachesMs: [] as (number | undefined)[], isDown: false, failing: [] as string[] };
  const listDeletedApplications = ({ deletedSince, pageToken }: ListDeletedApplicationsRequest) => {
    if (state.isDown) throw new Error('not now');
    if (pageToken === '') state.reachesMs.push(deletedSince && startedAt - timestampDate(deletedSince).getTime());
    const next = Number(pageToken) + 1;
    const applications = (pages[next - 1] ?? []).map(application);
    return { applications, nextPageToken: next < pages.length ? `${next}` : '' };
  };
  const { worker, reconcile } = followDeletions({
    service: 'test',
    redisUrl: 'redis://127.0.0.1:1',
    appsTransport: createRouterTransport(({ service }) => void service(ApplicationService, { listDeletedApplications })),
    clock: clock.now,
    logger,
    selectPending: async (deleted) => deleted.filter(({ applicationId }) => applicationId !== 'known'),
    async forget({ applicationId }) {
      state.forgotten.push(applicationId);
      if (state.failing.includes(applicationId)) throw new Error(`not ${applicationId}`);
    },
    ...overrides,
  });
  return { clock, state, worker, reconcile: (signal = new AbortController().signal) => reconcile(signal) };
}

describe('the reconciliation of deletions', () => {
  it('forgets what is pending on every page, and then starts where the last one did, less 5 minutes', async () => {
    const { clock, state, reconcile } = open([['a', 'known'], ['b'], []]);
    await reconcile();
    clock.advance(2 * MINUTE_MS);
    await reconcile();
    await reconcile();
    expect(state.forgotten).toEqual(['a', 'b', 'a', 'b', 'a', 'b']);
    expect(state.reachesMs).toEqual([undefined, 5 * MINUTE_MS, 3 * MINUTE_MS]);
  });

  it('starts with what was forgotten in part', async () => {
    const selectUnfinished = async () => [application('half')];
    const { state, reconcile } = open([['a']], { selectUnfinished });
    await reconcile();
    expect(state.forgotten).toEqual(['half', 'a']);
  });

  it('reaches back as far again after a failure, and a failing application does not stop the others', async () => {
    const ids = Array.from({ length: 25 }, (_, i) => `${i}`);
    const { state, reconcile } = open([ids]);
    state.isDown = true;
    await expect(reconcile()).rejects.toThrow();
    state.isDown = false;
    state.failing = ids.slice(0, 24);
    const err = (await Promise.resolve(reconcile()).catch((failure: unknown) => failure)) as AggregateError;
    expect(err.errors.map(({ message }) => message)).toEqual(ids.slice(0, 10).map((id) => `not ${id}`));
    expect(state.forgotten).toEqual(ids);
    state.failing = [];
    await reconcile();
    expect(state.reachesMs).toEqual([undefined, undefined]);
  });

  it('ends when it is aborted, and reaches back as far again', async () => {
    const stop = new AbortController();
    const seen: string[] = [];
    const forget: FollowOptions['forget'] = async ({ applicationId }) => {
      seen.push(applicationId);
      stop.abort();
    };
    const { state, reconcile } = open([['a', 'b'], ['c']], { forget });
    await reconcile(stop.signal);
    expect(seen).toEqual(['a']);
    await reconcile();
    expect(state.reachesMs).toEqual([undefined, undefined]);
    const hanging = createRouterTransport(
      ({ service }) => void service(ApplicationService, { listDeletedApplications: () => new Promise(() => undefined) }),
    );
    const { reconcile: hang } = open([], { appsTransport: hanging });
    await expect(hang(AbortSignal.abort())).rejects.toMatchObject({ code: Code.Canceled });
  });
});

it('jobs of deletions are applied, and invalid ones and other events are ignored', async () => {
  const { url } = await testRedis();
  const { state, worker } = open([], { redisUrl: url });
  const producer = createQueueProducer({ url, name: 'test-producer', queues: ['test'], logger });
  onTestFinished(async () => void (await Promise.all([worker.stop(), producer.close()])));
  producer.connect();
  worker.start();
  const [paused, deleted] = [randomUUID(), randomUUID()];
  const job = (name: string, data: object) => ({ id: randomUUID(), name, data });
  const jobs = [
    job('deleted', {}),
    job('deleted', { applicationId: 'x', accountId: randomUUID() }),
    job('paused', { applicationId: paused, accountId: randomUUID() }),
    job('deleted', { applicationId: deleted.toUpperCase(), accountId: randomUUID(), type: 'deleted' }),
  ];
  await eventually(() => producer.add('test', jobs));
  await eventually(() => expect(state.forgotten).toEqual([deleted]));
});
