import { Code, ConnectError, createClient, type Interceptor } from '@connectrpc/connect';
import { ApplicationService, ApplicationStatus } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { ErrorInfoSchema } from '@latchkey/proto/latchkey/rpc/v1/error_pb';
import { eventually } from '@latchkey/testkit/eventually';
import { describe, expect, it } from 'vitest';
import { defineErrors, fromConnectError } from '../errors.ts';
import { ALL_PATHS, type PathOptions } from '../testing/paths.ts';
import { testRoute } from '../testing/servers.ts';
import { MESSAGE_BYTES_MAX } from './route.ts';

type Impl = Parameters<typeof testRoute<typeof ApplicationService>>[1];

const errors = defineErrors({ gone_fishing: { kind: 'conflict', code: 'busy', message: 'The owner is away' } });
const settings = { version: '1.0 – ü', status: ApplicationStatus.PAUSED, userRequiresLicense: true };

/** A handler that answers nothing until its call is over, and tells how that was. */
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
  };
  return { impl, started: started.promise, ended: ended.promise };
}

async function failure(call: Promise<unknown>): Promise<ConnectError> {
  const err = await call.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(err).toBeInstanceOf(ConnectError);
  return err as ConnectError;
}

describe.each(ALL_PATHS)('$name', ({ name, open, deadlineHeader }) => {
  async function connect(impl: Impl, options?: PathOptions) {
    const { transport, lines } = await open([testRoute(ApplicationService, impl)], options);
    return { client: createClient(ApplicationService, transport), lines };
  }

  it('carries messages unchanged both ways', async () => {
    let seen: unknown;
    const { client } = await connect({
      async updateApplicationSetting(req) {
        seen = { id: req.applicationId, field: req.field, value: req.value };
        return {};
      },
      getApplicationSettings: () => ({ settings }),
    });
    await client.updateApplicationSetting({ applicationId: 'ä-1', field: 'status', value: { case: 'boolValue', value: false } });
    expect(seen).toEqual({ id: 'ä-1', field: 'status', value: { case: 'boolValue', value: false } });
    expect((await client.getApplicationSettings({})).settings).toMatchObject(settings);
  });

  it('carries an empty request and an empty answer', async () => {
    const { client } = await connect({ deleteApplication: async () => ({}) });
    expect(await client.deleteApplication({})).toMatchObject({ $typeName: 'latchkey.apps.v1.DeleteApplicationResponse' });
  });

  it('carries a message of almost the limit', async () => {
    const levels = Array.from({ length: 1000 }, (_, i) => `${i}`.padEnd(1000, 'x'));
    const { client } = await connect({ listLicenseLevels: async () => ({ levels }), replaceLicenseLevels: async () => ({}) });
    await client.replaceLicenseLevels({ levels });
    expect((await client.listLicenseLevels({})).levels).toEqual(levels);
  });

  it('hands request headers to the handler', async () => {
    let seen: unknown;
    const { client } = await connect({
      async deleteApplication(_req, { requestHeader }) {
        seen = [requestHeader.get('x-request-id'), requestHeader.get('x-other')];
        return {};
      },
    });
    await client.deleteApplication({}, { headers: { 'x-request-id': 'r-1', 'X-Other': 'o' } });
    await client.deleteApplication({}, { headers: [['x-request-id', 'r-2']] });
    expect(seen).toEqual(['r-2', null]);
    await client.deleteApplication({}, { headers: new Headers({ 'x-request-id': 'r-3', 'x-other': 'o' }) });
    expect(seen).toEqual(['r-3', 'o']);
  });

  it('hands response headers and trailers to the client', async () => {
    const { client } = await connect({
      async deleteApplication(_req, { responseHeader, responseTrailer }) {
        responseHeader.set('x-head', 'h');
        responseTrailer.set('x-trail', 't');
        return {};
      },
    });
    const seen: Array<string | null> = [];
    await client.deleteApplication(
      {},
      { onHeader: (header) => seen.push(header.get('x-head')), onTrailer: (trailer) => seen.push(trailer.get('x-trail')) },
    );
    expect(seen).toEqual(['h', 't']);
  });

  it('carries a domain error with its code, message, reason and metadata', async () => {
    const { client, lines } = await connect({
      async deleteApplication(_req, { responseTrailer }) {
        responseTrailer.set('x-trail', 't');
        throw errors.gone_fishing({ until: 'monday' });
      },
    });
    const err = await failure(client.deleteApplication({}, { headers: { 'x-request-id': 'r-1' } }));
    expect(err.code).toBe(Code.AlreadyExists);
    expect(err.rawMessage).toBe('The owner is away');
    expect(err.metadata.get('x-trail')).toBe('t');
    const info = { reason: 'gone_fishing', kind: 'conflict', code: 'busy', metadata: { until: 'monday' } };
    expect(err.findDetails(ErrorInfoSchema)).toMatchObject([info]);
    expect(fromConnectError(err)).toMatchObject({ ...info, message: 'The owner is away', httpStatus: 409 });
    expect(lines).toMatchObject([{ level: 30, msg: 'rpc refused', requestId: 'r-1', reason: 'gone_fishing' }]);
  });

  it('masks an unknown error as internal and logs it under the request id', async () => {
    const { client, lines } = await connect({
      deleteApplication() {
        throw new Error('the password is swordfish');
      },
    });
    const err = await failure(client.deleteApplication({}, { headers: { 'x-request-id': 'r-7' } }));
    expect(err.code).toBe(Code.Internal);
    expect(err.rawMessage).toBe('internal error');
    expect(JSON.stringify([err, [...err.metadata]])).not.toContain('swordfish');
    expect(lines).toMatchObject([
      {
        level: 50,
        requestId: 'r-7',
        rpc: 'latchkey.apps.v1.ApplicationService/DeleteApplication',
        err: { message: 'the password is swordfish' },
      },
    ]);
  });

  it('masks an error that the handler got from a service of its own', async () => {
    const { client } = await connect({
      deleteApplication() {
        throw new ConnectError('no such table', Code.NotFound);
      },
    });
    const err = await failure(client.deleteApplication({}));
    expect([err.code, err.rawMessage]).toEqual([Code.Internal, 'internal error']);
  });

  it('logs one line for a call that succeeds', async () => {
    const { client, lines } = await connect({ deleteApplication: async () => ({}) });
    await client.deleteApplication({}, { headers: { 'x-request-id': 'r-1' } });
    // In one process the line of the request is in the same log.
    const level = name === 'direct transport' ? 20 : 30;
    expect(lines).toMatchObject([{ level, msg: 'rpc', requestId: 'r-1', ms: expect.any(Number) }]);
  });

  it('ends a call and its handler at the deadline of the client', async () => {
    const { impl, ended } = waitingImpl();
    const { client, lines } = await connect({ ...impl, deleteApplication: async () => ({}) });
    // Whatever the first call takes longer, this one is to reach the handler before its deadline.
    await client.deleteApplication({});
    const err = await failure(client.getApplicationSettings({}, { timeoutMs: 250 }));
    expect(err.code).toBe(Code.DeadlineExceeded);
    expect(await ended).toBeInstanceOf(Error);
    await eventually(() => expect(lines.slice(1)).toMatchObject([{ level: 30, msg: 'rpc refused' }]));
  });

  it('tells the handler the time that is left', async () => {
    let left: number | undefined;
    const { client } = await connect({
      async deleteApplication(_req, context) {
        left = context.timeoutMs();
        return {};
      },
    });
    await client.deleteApplication({}, { timeoutMs: 5_000 });
    expect(left).toBeGreaterThan(1_000);
    expect(left).toBeLessThanOrEqual(5_000);
    for (const timeoutMs of [undefined, 0, 10 ** 7]) {
      await client.deleteApplication({}, timeoutMs === undefined ? {} : { timeoutMs });
      expect(left).toBeGreaterThan(30_000);
      expect(left).toBeLessThanOrEqual(60_000);
    }
  });

  it.runIf(deadlineHeader)('ends a call at the deadline that the server was told, whatever the handler does', async () => {
    const { client } = await connect({ getApplicationSettings: () => new Promise(() => undefined) });
    const err = await failure(client.getApplicationSettings({}, deadlineHeader ? { headers: deadlineHeader } : {}));
    expect([err.code, err.rawMessage]).toEqual([Code.DeadlineExceeded, 'the deadline has passed']);
  });

  it('aborts the handler when the client cancels', async () => {
    const { impl, started, ended } = waitingImpl();
    const { client } = await connect(impl);
    const controller = new AbortController();
    const call = failure(client.getApplicationSettings({}, { signal: controller.signal }));
    await started;
    controller.abort();
    expect((await call).code).toBe(Code.Canceled);
    expect(await ended).toBeInstanceOf(Error);
  });

  it('does not send a call that was canceled before', async () => {
    let calls = 0;
    const { client } = await connect({
      async deleteApplication() {
        calls += 1;
        return {};
      },
    });
    const err = await failure(client.deleteApplication({}, { signal: AbortSignal.abort() }));
    expect(err.code).toBe(Code.Canceled);
    expect(calls).toBe(0);
  });

  it('hands the deadline of one call on to the next', async () => {
    const { client } = await connect({ getApplicationSettings: () => new Promise(() => undefined) });
    const signal = AbortSignal.abort(new ConnectError('upstream', Code.DeadlineExceeded));
    expect((await failure(client.getApplicationSettings({}, { signal }))).code).toBe(Code.DeadlineExceeded);
  });

  it('answers unimplemented for a method that the service has not', async () => {
    const { client } = await connect({});
    expect((await failure(client.deleteApplication({}))).code).toBe(Code.Unimplemented);
  });

  it('runs interceptors at both ends, the first outermost', async () => {
    const order: string[] = [];
    const named =
      (name: string): Interceptor =>
      (next) =>
      async (req) => {
        order.push(`${name} asks ${req.method.name}`);
        req.header.set(`x-${name}`, 'was here');
        const res = await next(req);
        order.push(`${name} answers`);
        res.header.set(`x-${name}-back`, 'was here');
        return res;
      };
    let seen: unknown;
    const { client } = await connect(
      {
        async deleteApplication(_req, { requestHeader }) {
          seen = ['x-c1', 'x-c2', 'x-s1', 'x-s2'].map((name) => requestHeader.get(name));
          return {};
        },
      },
      { clientInterceptors: [named('c1'), named('c2')], serverInterceptors: [named('s1'), named('s2')] },
    );
    let back: Headers | undefined;
    await client.deleteApplication(
      {},
      {
        onHeader: (header) => {
          back = header;
        },
      },
    );
    expect(order).toEqual([
      ...['c1', 'c2', 's1', 's2'].map((name) => `${name} asks DeleteApplication`),
      ...['s2', 's1', 'c2', 'c1'].map((name) => `${name} answers`),
    ]);
    expect(seen).toEqual(['was here', 'was here', 'was here', 'was here']);
    expect(['x-s1-back', 'x-c1-back'].map((name) => back?.get(name))).toEqual(['was here', 'was here']);
  });

  it('shows the error of a handler to interceptors at both ends', async () => {
    const codes: Code[] = [];
    const watch: Interceptor = (next) => async (req) => {
      try {
        return await next(req);
      } catch (err) {
        codes.push(ConnectError.from(err).code);
        throw err;
      }
    };
    const { client } = await connect(
      {
        deleteApplication() {
          throw errors.gone_fishing();
        },
      },
      { clientInterceptors: [watch], serverInterceptors: [watch] },
    );
    await failure(client.deleteApplication({}));
    expect(codes).toEqual([Code.AlreadyExists, Code.AlreadyExists]);
  });

  it('cancels and ends calls inside interceptors alike', async () => {
    const pass: Interceptor = (next) => (req) => next(req);
    const { impl, started, ended } = waitingImpl();
    const { client } = await connect(impl, { clientInterceptors: [pass], serverInterceptors: [pass] });
    const controller = new AbortController();
    const call = failure(client.getApplicationSettings({}, { signal: controller.signal }));
    await started;
    controller.abort();
    expect((await call).code).toBe(Code.Canceled);
    await ended;
    expect((await failure(client.getApplicationSettings({}, { timeoutMs: 20 }))).code).toBe(Code.DeadlineExceeded);
  });

  it.skipIf(name === 'direct transport')('refuses a request and an answer beyond the limit', async () => {
    const level = 'x'.repeat(MESSAGE_BYTES_MAX);
    const { client } = await connect({
      replaceLicenseLevels: async () => ({}),
      listLicenseLevels: async () => ({ levels: [level] }),
    });
    const refused = async () => (await failure(client.replaceLicenseLevels({ levels: [level] }))).code;
    // The second may travel on the connection of the first.
    expect([await refused(), await refused()]).toEqual([Code.ResourceExhausted, Code.ResourceExhausted]);
    expect((await failure(client.listLicenseLevels({}))).code).toBe(Code.ResourceExhausted);
  });
});
