import { create, type DescMethodUnary, fromBinary, type MessageInitShape, type MessageShape, toBinary } from '@bufbuild/protobuf';
import { findTrailerError } from '@connectrpc/connect/protocol-grpc';
import { type CallOptions, Client, credentials, Metadata, type ServiceError, status } from '@grpc/grpc-js';
import { Health, HealthCheckResponse_ServingStatus as Status } from '@latchkey/proto/health/v1/health_pb';
import { ApplicationService } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { describe, expect, it, onTestFinished } from 'vitest';
import { defineErrors, fromConnectError } from '../errors.ts';
import { CREDENTIAL, startTestServer, testRoute } from '../testing/servers.ts';
import { methodPath } from './bound-method.ts';
import { MESSAGE_BYTES_MAX } from './route.ts';

type Impl = Parameters<typeof testRoute<typeof ApplicationService>>[1];

const errors = defineErrors({ gone_fishing: { kind: 'conflict', message: 'The owner is away' } });

interface CallSettings {
  readonly authorization?: string;
  readonly headers?: Record<string, string>;
  readonly options?: CallOptions;
}

async function open(impl: Impl) {
  const { grpcUrl, lines } = await startTestServer([testRoute(ApplicationService, impl)]);
  const client = new Client(grpcUrl.replace('http://', ''), credentials.createInsecure());
  onTestFinished(() => client.close());
  const start = <M extends DescMethodUnary>(method: M, input: MessageInitShape<M['input']>, settings: CallSettings = {}) => {
    const metadata = new Metadata();
    const { authorization = `Bearer ${CREDENTIAL}`, headers = {}, options = {} } = settings;
    if (authorization !== '') metadata.set('authorization', authorization);
    for (const [name, value] of Object.entries(headers)) metadata.set(name, value);
    const { promise, resolve, reject } = Promise.withResolvers<MessageShape<M['output']>>();
    const call = client.makeUnaryRequest(
      methodPath(method),
      (value: Uint8Array) => Buffer.from(value),
      (bytes) => fromBinary(method.output, bytes) as MessageShape<M['output']>,
      toBinary(method.input, create(method.input, input)),
      metadata,
      options,
      (err, value) => (err ? reject(err) : resolve(value as MessageShape<M['output']>)),
    );
    return { call, answer: promise };
  };
  const failure = (...args: Parameters<typeof start>) =>
    start(...args).answer.then(
      () => expect.fail('the call succeeded'),
      (err: ServiceError) => err,
    );
  return { start, failure, lines };
}

const { deleteApplication, getApplicationSettings, replaceLicenseLevels } = ApplicationService.method;

describe('grpc-js against our gRPC port', () => {
  it('gets messages, headers and trailers', async () => {
    let requestId: string | null = null;
    const { start } = await open({
      async getApplicationSettings({ applicationId }, { requestHeader, responseHeader, responseTrailer }) {
        requestId = requestHeader.get('x-request-id');
        responseHeader.set('x-head', 'h');
        responseTrailer.set('x-trail', 't');
        return { settings: { version: applicationId } };
      },
    });
    const { call, answer } = start(getApplicationSettings, { applicationId: 'ä' }, { headers: { 'x-request-id': 'r-1' } });
    const header = Promise.withResolvers<Metadata>();
    const trailer = Promise.withResolvers<Metadata>();
    call.on('metadata', header.resolve).on('status', (end) => trailer.resolve(end.metadata));
    expect((await answer).settings?.version).toBe('ä');
    expect([requestId, (await header.promise).get('x-head'), (await trailer.promise).get('x-trail')]).toEqual([
      'r-1',
      ['h'],
      ['t'],
    ]);
  });

  it('gets a domain error with its details', async () => {
    const { failure } = await open({
      deleteApplication() {
        throw errors.gone_fishing({ until: 'monday' });
      },
    });
    const err = await failure(deleteApplication, {});
    expect([err.code, err.details]).toEqual([status.ALREADY_EXISTS, 'The owner is away']);
    const trailer = new Headers({ 'grpc-status': String(err.code) });
    for (const value of err.metadata.get('grpc-status-details-bin')) {
      trailer.set('grpc-status-details-bin', (value as Buffer).toString('base64'));
    }
    expect(fromConnectError(findTrailerError(trailer))).toMatchObject({ reason: 'gone_fishing', metadata: { until: 'monday' } });
  });

  it('gets a message as it was written, whatever is in it', async () => {
    const message = 'First, second: 100 % of „them“, %2C and\nall';
    const { failure } = await open({
      deleteApplication() {
        throw defineErrors({ odd: { kind: 'conflict', message } }).odd();
      },
    });
    expect((await failure(deleteApplication, {})).details).toBe(message);
  });

  it('gets an unknown error masked', async () => {
    const { failure, lines } = await open({
      deleteApplication() {
        throw new Error('swordfish');
      },
    });
    const err = await failure(deleteApplication, {}, { headers: { 'x-request-id': 'r-2' } });
    expect([err.code, err.details]).toEqual([status.INTERNAL, 'internal error']);
    expect(lines).toMatchObject([{ level: 50, requestId: 'r-2' }]);
  });

  it('is refused without the credential', async () => {
    const { failure } = await open({ deleteApplication: async () => ({}) });
    for (const authorization of ['', 'Bearer wrong']) {
      expect((await failure(deleteApplication, {}, { authorization })).code).toBe(status.UNAUTHENTICATED);
    }
  });

  it('ends at its deadline, and the handler with it', async () => {
    const ended = Promise.withResolvers<void>();
    const { failure } = await open({
      async getApplicationSettings(_req, { signal }) {
        signal.addEventListener('abort', () => ended.resolve(), { once: true });
        return await new Promise(() => undefined);
      },
    });
    const options = { deadline: Date.now() + 1_000 };
    expect((await failure(getApplicationSettings, {}, { options })).code).toBe(status.DEADLINE_EXCEEDED);
    await ended.promise;
  });

  it('cancels the handler', async () => {
    const started = Promise.withResolvers<void>();
    const ended = Promise.withResolvers<void>();
    const { start } = await open({
      async getApplicationSettings(_req, { signal }) {
        signal.addEventListener('abort', () => ended.resolve(), { once: true });
        started.resolve();
        return await new Promise(() => undefined);
      },
    });
    const { call, answer } = start(getApplicationSettings, {});
    await started.promise;
    call.cancel();
    await expect(answer).rejects.toMatchObject({ code: status.CANCELLED });
    await ended.promise;
  });

  it('is refused a request beyond the limit and an unknown method', async () => {
    const { failure } = await open({ replaceLicenseLevels: async () => ({}) });
    const levels = ['x'.repeat(MESSAGE_BYTES_MAX)];
    expect((await failure(replaceLicenseLevels, { levels })).code).toBe(status.RESOURCE_EXHAUSTED);
    expect((await failure(deleteApplication, {})).code).toBe(status.UNIMPLEMENTED);
  });

  it('asks for the health without a credential', async () => {
    const { start } = await open({});
    expect((await start(Health.method.check, {}, { authorization: '' }).answer).status).toBe(Status.SERVING);
  });
});
