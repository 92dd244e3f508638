import { create, type DescMethodUnary, fromBinary, type MessageInitShape, type MessageShape, toBinary } from '@bufbuild/protobuf';
import { findTrailerError } from '@connectrpc/connect/protocol-grpc';
import { type CallOptions, Client, credentials, Metadata, type ServiceError, status } from '@grpc/grpc-js';
import { Health, HealthCheckResponse_ServingStatus as Status } from '@latchkey/proto/health/v1/health_pb';
import { ApplicationService } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { describe, expect, it, onTestFinished } from 'vitest';
import { defineErrors, fromConnectError } from '../../errors/errors.ts';
import { AUTHORIZATION, startTestServer, testRoute } from '../../testing/servers.ts';
import { MESSAGE_BYTES_MAX, methodPath } from '../route.ts';

const message = 'First, second: 100 % of „them“, %2C and\nall';
const errors = defineErrors({ odd: { kind: 'conflict', message } });
const { deleteApplication, getApplicationSettings, replaceLicenseLevels } = ApplicationService.method;

async function open() {
  const ended = Promise.withResolvers<void>();
  const route = testRoute(ApplicationService, {
    async getApplicationSettings({ applicationId }, { requestHeader, responseHeader, responseTrailer, signal }) {
      if (applicationId === 'wait') {
        signal.addEventListener('abort', () => ended.resolve(), { once: true });
        return await new Promise(() => undefined);
      }
      responseHeader.set('x-head', 'h');
      responseTrailer.set('x-trail', 't');
      return { settings: { version: `${applicationId} ${requestHeader.get('x-request-id')}` } };
    },
    replaceLicenseLevels() {
      throw errors.odd({ until: 'monday' });
    },
  });
  const { grpcUrl } = await startTestServer([route]);
  const client = new Client(grpcUrl.replace('http://', ''), credentials.createInsecure());
  onTestFinished(() => client.close());
  const start = <M extends DescMethodUnary>(
    method: M,
    input: MessageInitShape<M['input']>,
    { authorization = AUTHORIZATION, ...options }: CallOptions & { authorization?: string } = {},
  ) => {
    const metadata = new Metadata();
    metadata.set('x-request-id', 'r-1');
    if (authorization !== '') metadata.set('authorization', authorization);
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
    return { call, response: promise };
  };
  const failure = (...args: Parameters<typeof start>): Promise<ServiceError> =>
    start(...args).response.then(
      () => expect.fail('the call succeeded'),
      (err) => err,
    );
  return { start, failure, ended: ended.promise };
}

describe('grpc-js against our gRPC port', () => {
  it('gets messages, headers and trailers', async () => {
    const { start } = await open();
    const { call, response } = start(getApplicationSettings, { applicationId: 'ä' });
    const header = new Promise<Metadata>((resolve) => call.on('metadata', resolve));
    const trailer = new Promise<Metadata>((resolve) => call.on('status', ({ metadata }) => resolve(metadata)));
    expect((await response).settings?.version).toBe('ä r-1');
    expect([(await header).get('x-head'), (await trailer).get('x-trail')]).toEqual([['h'], ['t']]);
  });

  it('gets a domain error with its details, and its message as it was written', async () => {
    const { failure } = await open();
    const err = await failure(replaceLicenseLevels, {});
    expect([err.code, err.details]).toEqual([status.ALREADY_EXISTS, message]);
    const trailer = new Headers({ 'grpc-status': String(err.code) });
    for (const value of err.metadata.get('grpc-status-details-bin')) {
      trailer.set('grpc-status-details-bin', (value as Buffer).toString('base64'));
    }
    expect(fromConnectError(findTrailerError(trailer))).toMatchObject({ reason: 'odd', metadata: { until: 'monday' } });
  });

  it('gets the status of every rejection', async () => {
    const { start, failure } = await open();
    for (const authorization of ['', 'Bearer wrong']) {
      expect((await failure(getApplicationSettings, {}, { authorization })).code).toBe(status.UNAUTHENTICATED);
    }
    const levels = ['x'.repeat(MESSAGE_BYTES_MAX)];
    expect((await failure(replaceLicenseLevels, { levels })).code).toBe(status.RESOURCE_EXHAUSTED);
    expect((await failure(deleteApplication, {})).code).toBe(status.UNIMPLEMENTED);
    expect((await start(Health.method.check, {}, { authorization: '' }).response).status).toBe(Status.SERVING);
  });

  it('ends a call and its handler at its deadline', async () => {
    const { failure, ended } = await open();
    const err = await failure(getApplicationSettings, { applicationId: 'wait' }, { deadline: Date.now() + 1_000 });
    expect(err.code).toBe(status.DEADLINE_EXCEEDED);
    await ended;
  });
});
