import { create, type DescMethodUnary, fromBinary, type MessageInitShape, type MessageShape, toBinary } from '@bufbuild/protobuf';
import { findTrailerError } from '@connectrpc/connect/protocol-grpc';
import { Client, credentials, Metadata, type ServiceError, status } from '@grpc/grpc-js';
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
  const route = testRoute(ApplicationService, {
    getApplicationSettings: async ({ applicationId }) => ({ settings: { version: applicationId } }),
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
    { authorization = AUTHORIZATION } = {},
  ) => {
    const metadata = new Metadata();
    if (authorization !== '') metadata.set('authorization', authorization);
    const { promise, resolve, reject } = Promise.withResolvers<MessageShape<M['output']>>();
    client.makeUnaryRequest(
      methodPath(method),
      (value: Uint8Array) => Buffer.from(value),
      (bytes) => fromBinary(method.output, bytes) as MessageShape<M['output']>,
      toBinary(method.input, create(method.input, input)),
      metadata,
      (err, value) => (err ? reject(err) : resolve(value as MessageShape<M['output']>)),
    );
    return promise;
  };
  const failure = (...args: Parameters<typeof start>): Promise<ServiceError> =>
    start(...args).then(
      () => expect.fail('the call succeeded'),
      (err) => err,
    );
  return { start, failure };
}

describe('grpc-js against our gRPC port', () => {
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

  it('gets messages, and the status of every rejection', async () => {
    const { start, failure } = await open();
    expect((await start(getApplicationSettings, { applicationId: 'ä' })).settings?.version).toBe('ä');
    for (const authorization of ['', 'Bearer wrong']) {
      expect((await failure(getApplicationSettings, {}, { authorization })).code).toBe(status.UNAUTHENTICATED);
    }
    const levels = ['x'.repeat(MESSAGE_BYTES_MAX)];
    expect((await failure(replaceLicenseLevels, { levels })).code).toBe(status.RESOURCE_EXHAUSTED);
    expect((await failure(deleteApplication, {})).code).toBe(status.UNIMPLEMENTED);
    expect((await start(Health.method.check, {}, { authorization: '' })).status).toBe(Status.SERVING);
  });
});
