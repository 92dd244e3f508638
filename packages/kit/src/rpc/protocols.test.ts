import { Code, ConnectError, createClient } from '@connectrpc/connect';
import { Health, HealthCheckResponse_ServingStatus as Status } from '@latchkey/proto/health/v1/health_pb';
import { ApplicationService, ApplicationStatus } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { ErrorInfoSchema } from '@latchkey/proto/latchkey/rpc/v1/error_pb';
import { eventually } from '@latchkey/testkit/eventually';
import { describe, expect, it, vi } from 'vitest';
import { defineErrors, fromConnectError } from '../errors/errors.ts';
import { ALL_PATHS, PATHS_TO_OUR_SERVER, type PathOptions } from '../testing/paths.ts';
import { codeOf, heldRoute, testRoute } from '../testing/servers.ts';
import { MESSAGE_BYTES_MAX } from './route.ts';

type Impl = Parameters<typeof testRoute<typeof ApplicationService>>[1];

const LIMIT = { policy: 'fish', limit: 1, windowMs: 0, retryMs: 2_000 };
const errors = defineErrors({ gone_fishing: { kind: 'conflict', code: 'busy', message: 'The owner is away' } });
const settings = { version: '1.0 – ü', status: ApplicationStatus.PAUSED, userRequiresLicense: true };
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/** A handler that waits until its call is over. */
function waitingImpl() {
  const started = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<unknown>();
  const impl: Impl = {
    async getApplicationSettings(_req, { signal }) {
      started.resolve();
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
      ended.resolve(signal.reason);
      throw signal.reason;
    },
    deleteApplication: async () => ({}),
  };
  return { impl, started: started.promise, ended: ended.promise };
}

const failure = (call: Promise<unknown>): Promise<ConnectError> =>
  call.then(() => expect.fail('the call succeeded'), ConnectError.from);

describe.each(ALL_PATHS)('$name', ({ name, open, deadlineHeader }) => {
  async function connect(impl: Impl, options?: PathOptions) {
    const { transport, lines } = await open([testRoute(ApplicationService, impl)], options);
    return { client: createClient(ApplicationService, transport), lines };
  }

  it('carries messages and request headers, and logs one line', async () => {
    let seen: unknown;
    const { client, lines } = await connect({
      async getApplicationSettings({ applicationId }, { requestHeader }) {
        seen = [applicationId, requestHeader.get('x-other')];
        return { settings };
      },
    });
    const headers = new Headers({ 'x-request-id': 'a.b_C-9', 'X-Other': 'o' });
    const response = await client.getApplicationSettings({ applicationId: 'ä-1' }, { headers });
    expect(seen).toEqual(['ä-1', 'o']);
    expect(response.settings).toMatchObject(settings);
    const level = name === 'direct transport' ? 20 : 30;
    expect(lines).toMatchObject([{ level, msg: 'rpc', requestId: 'a.b_C-9', ms: expect.any(Number) }]);
  });

  it('carries messages of almost the limit, and rejects larger ones', async () => {
    const levels = Array.from({ length: 1000 }, (_, i) => `${i}`.padEnd(1000, 'x'));
    const { client } = await connect({
      listLicenseLevels: async ({ applicationId }) => ({ levels: applicationId ? ['x'.repeat(MESSAGE_BYTES_MAX)] : levels }),
      replaceLicenseLevels: async () => ({}),
    });
    await client.replaceLicenseLevels({ levels });
    expect((await client.listLicenseLevels({})).levels).toEqual(levels);
    if (name === 'direct transport') return;
    const large = { levels: ['x'.repeat(MESSAGE_BYTES_MAX)] };
    expect(await codeOf(client.replaceLicenseLevels(large))).toBe(Code.ResourceExhausted);
    expect(await codeOf(client.listLicenseLevels({ applicationId: 'large' }))).toBe(Code.ResourceExhausted);
  });

  it('carries a domain error with its code, message, reason and metadata', async () => {
    const { client, lines } = await connect({
      deleteApplication: () => Promise.reject(errors.gone_fishing(LIMIT)),
    });
    const err = await failure(client.deleteApplication({}, { headers: { 'x-request-id': 'r-1' } }));
    expect([err.code, err.rawMessage]).toEqual([Code.AlreadyExists, 'The owner is away']);
    const info = { reason: 'gone_fishing', kind: 'conflict', code: 'busy', metadata: errors.gone_fishing(LIMIT).metadata };
    expect(err.findDetails(ErrorInfoSchema)).toMatchObject([info]);
    expect(fromConnectError(err)).toMatchObject({ ...info, message: 'The owner is away', httpStatus: 409 });
    expect(lines).toMatchObject([{ level: 30, msg: 'rpc rejected', requestId: 'r-1', reason: 'gone_fishing' }]);
  });

  it.each([new Error('the password is swordfish'), new ConnectError('the password is swordfish', Code.NotFound)])(
    'masks %o as internal and logs it under the request id',
    async (thrown) => {
      const { client, lines } = await connect({ deleteApplication: () => Promise.reject(thrown) });
      const err = await failure(client.deleteApplication({}, { headers: [['x-request-id', 'r-7']] }));
      expect([err.code, err.rawMessage]).toEqual([Code.Internal, 'internal error']);
      expect(JSON.stringify([err, [...err.metadata]])).not.toContain('swordfish');
      const rpc = 'latchkey.apps.v1.ApplicationService/DeleteApplication';
      expect(lines).toMatchObject([{ level: 50, requestId: 'r-7', rpc, err: { message: thrown.message } }]);
    },
  );

  it('ends a call and its handler at the deadline of the client', async () => {
    const { impl, ended } = waitingImpl();
    const { client, lines } = await connect(impl);
    // Opens the connection, so that the next call reaches the handler before its deadline.
    await client.deleteApplication({});
    expect(await codeOf(client.getApplicationSettings({}, { timeoutMs: 250 }))).toBe(Code.DeadlineExceeded);
    expect(await ended).toBeInstanceOf(Error);
    await eventually(() => expect(lines.slice(1)).toMatchObject([{ level: 30, msg: 'rpc rejected' }]));
  });

  it('gives the handler the time that is left, 60 s at most', async () => {
    const left: number[] = [];
    const deleteApplication: Impl['deleteApplication'] = async (_req, context) => {
      left.push(context.timeoutMs() ?? 0);
      return {};
    };
    const { client } = await connect({ deleteApplication });
    for (const options of [{ timeoutMs: 5_000 }, {}, { timeoutMs: 0 }, { timeoutMs: 10 ** 7 }]) {
      await client.deleteApplication({}, options);
    }
    expect(left.map((ms) => Math.ceil(ms / 5_000))).toEqual([1, 12, 12, 12]);
  });

  it.runIf(deadlineHeader)('ends a call at the deadline of its header, whatever the handler does', async () => {
    const { client } = await connect({ getApplicationSettings: () => new Promise(() => undefined) });
    const err = await failure(client.getApplicationSettings({}, deadlineHeader ? { headers: deadlineHeader } : {}));
    expect([err.code, err.rawMessage]).toEqual([Code.DeadlineExceeded, 'the deadline has passed']);
  });

  it('aborts the handler of a call that its client cancels, and sends none that was canceled before', async () => {
    const { impl, started, ended } = waitingImpl();
    const { client, lines } = await connect(impl);
    const controller = new AbortController();
    const call = codeOf(client.getApplicationSettings({}, { signal: controller.signal }));
    await started;
    controller.abort();
    expect(await call).toBe(Code.Canceled);
    expect(await ended).toBeInstanceOf(Error);
    await eventually(() => expect(lines).toMatchObject([{ msg: 'rpc rejected', reason: 'canceled' }]));
    expect(await codeOf(client.deleteApplication({}, { signal: controller.signal }))).toBe(Code.Canceled);
    expect(lines).toHaveLength(1);
    const upstream = AbortSignal.abort(new ConnectError('upstream', Code.DeadlineExceeded));
    expect(await codeOf(client.deleteApplication({}, { signal: upstream }))).toBe(Code.DeadlineExceeded);
  });

  it('answers unimplemented for a method that the service lacks', async () => {
    const { client } = await connect({});
    expect(await codeOf(client.deleteApplication({}))).toBe(Code.Unimplemented);
  });
});

describe.each(PATHS_TO_OUR_SERVER)('$name', ({ open }) => {
  it('runs no handler without a valid credential, and logs the address once', async () => {
    const handler = vi.fn(async () => ({}));
    const route = testRoute(ApplicationService, { deleteApplication: handler });
    const call = async (credential: string, credentials: readonly string[]) => {
      const { transport, lines } = await open([route], { credential, credentials });
      const { deleteApplication } = createClient(ApplicationService, transport);
      const codes = [await codeOf(deleteApplication({})), await codeOf(deleteApplication({}))];
      return { codes, lines: lines.filter(({ level }) => level === 40) };
    };
    const rejected = { codes: [Code.Unauthenticated, Code.Unauthenticated], lines: [{ address: '127.0.0.1' }] };
    for (const credential of ['', 'wrong', 'new2']) expect(await call(credential, ['new', 'old'])).toMatchObject(rejected);
    expect(handler).not.toHaveBeenCalled();
    for (const credential of ['new', 'old']) await call(credential, ['new', 'old']);
    expect(handler).toHaveBeenCalledTimes(4);
  });

  it('replaces a request id that is missing, long or odd', async () => {
    const seen: unknown[] = [];
    const route = testRoute(ApplicationService, {
      async deleteApplication(_req, { requestHeader }) {
        seen.push(requestHeader.get('x-request-id'));
        return {};
      },
    });
    const { transport, lines } = await open([route]);
    const { deleteApplication } = createClient(ApplicationService, transport);
    for (const given of ['x'.repeat(129), 'a b', '{}']) await deleteApplication({}, { headers: { 'x-request-id': given } });
    await deleteApplication({});
    for (const id of seen) expect(id).toMatch(UUID);
    expect(new Set(seen).size).toBe(4);
    expect(lines.map(({ requestId }) => requestId)).toEqual(seen);
  });

  it('rejects calls beyond the limit, health checks aside, and lets the others end when the server stops', async () => {
    const { route, signals, release } = heldRoute();
    const { transport, stop } = await open([route], { limits: { calls: 2 } });
    const { deleteApplication } = createClient(ApplicationService, transport);
    const underWay = [deleteApplication({}), deleteApplication({})];
    await eventually(() => signals.length === 2);
    const err = await failure(deleteApplication({}));
    expect([err.code, fromConnectError(err)?.reason]).toEqual([Code.Unavailable, 'too_many_calls']);
    expect((await createClient(Health, transport).check({})).status).toBe(Status.SERVING);
    const stopped = stop?.();
    release();
    await Promise.all(underWay);
    await stopped;
  });
});
