import { type DescService, fromBinary } from '@bufbuild/protobuf';
import { FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt';
import { createClient, type Interceptor } from '@connectrpc/connect';
import { createGrpcTransport, Http2SessionManager } from '@connectrpc/connect-node';
import { ServerReflection } from '@latchkey/proto/grpc/reflection/v1/reflection_pb';
import { Health, HealthCheckResponse_ServingStatus as Status } from '@latchkey/proto/health/v1/health_pb';
import { ApplicationService } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { describe, expect, it, onTestFinished } from 'vitest';
import { AUTHORIZATION, startTestServer, testRoute } from '../../testing/servers.ts';

const APPS = ApplicationService.typeName;

/** A server whose readiness can be changed, and gRPC clients of it. */
async function openServer() {
  let isReady = true;
  const checkReady = () => (isReady ? Promise.resolve() : Promise.reject(new Error('not ready')));
  const server = await startTestServer([testRoute(ApplicationService, {})], { checkReady });
  const sessionManager = new Http2SessionManager(server.grpcUrl);
  onTestFinished(() => sessionManager.abort());
  const authorize: Interceptor = (next) => (req) => {
    req.header.set('authorization', AUTHORIZATION);
    return next(req);
  };
  const transport = createGrpcTransport({ baseUrl: server.grpcUrl, sessionManager, interceptors: [authorize] });
  const setReady = (value: boolean) => {
    isReady = value;
  };
  return { ...server, setReady, client: <S extends DescService>(service: S) => createClient(service, transport) };
}

describe('health', () => {
  it('lists the server and each of its services', async () => {
    const { client, setReady } = await openServer();
    const statuses = async () =>
      Object.entries((await client(Health).list({})).statuses).map(([name, { status }]) => [name, status]);
    expect(await statuses()).toEqual([
      ['', Status.SERVING],
      [APPS, Status.SERVING],
    ]);
    setReady(false);
    expect(await statuses()).toEqual([
      ['', Status.NOT_SERVING],
      [APPS, Status.NOT_SERVING],
    ]);
  });

  it('sends watchers each change', async () => {
    const { client, setReady } = await openServer();
    const statuses = client(Health).watch({ service: APPS })[Symbol.asyncIterator]();
    for (const [isReady, status] of [
      [true, Status.SERVING],
      [false, Status.NOT_SERVING],
      [true, Status.SERVING],
    ] as const) {
      setReady(isReady);
      expect((await statuses.next()).value).toMatchObject({ status });
    }
    const unknown = client(Health).watch({ service: 'nothing' })[Symbol.asyncIterator]();
    expect((await unknown.next()).value).toMatchObject({ status: Status.SERVICE_UNKNOWN });
  });
});

describe('reflection', () => {
  type Ask = { case: 'listServices' | 'fileByFilename' | 'fileContainingSymbol' | 'allExtensionNumbersOfType'; value: string };

  async function ask(...requests: Array<Ask | undefined>) {
    const { client } = await openServer();
    async function* given() {
      for (const messageRequest of requests) yield { host: 'h', ...(messageRequest && { messageRequest }) };
    }
    const responses = [];
    for await (const { messageResponse } of client(ServerReflection).serverReflectionInfo(given())) {
      if (messageResponse.case === 'listServicesResponse') responses.push(messageResponse.value.service.map(({ name }) => name));
      else if (messageResponse.case !== 'fileDescriptorResponse') responses.push([messageResponse.case]);
      else
        responses.push(
          messageResponse.value.fileDescriptorProto.map((bytes) => fromBinary(FileDescriptorProtoSchema, bytes).name),
        );
    }
    return responses;
  }

  it('lists every service, and each file with its imports', async () => {
    const file = [
      'latchkey/apps/v1/application.proto',
      'google/protobuf/timestamp.proto',
      'latchkey/apps/v1/event.proto',
      'latchkey/rpc/v1/error.proto',
      'google/protobuf/descriptor.proto',
    ];
    const requests: Ask[] = [
      { case: 'listServices', value: '' },
      { case: 'fileByFilename', value: file[0] as string },
      { case: 'fileContainingSymbol', value: APPS },
    ];
    const services = [APPS, 'grpc.health.v1.Health', 'grpc.reflection.v1.ServerReflection'];
    expect(await ask(...requests)).toEqual([services, file, file]);
  });

  it('finds the file of services, methods, messages, fields and enums', async () => {
    const application = 'latchkey/apps/v1/application.proto';
    const files = {
      [`${APPS}.ListApplications`]: application,
      'latchkey.apps.v1.Application': application,
      'latchkey.apps.v1.Application.name': application,
      'google.protobuf.Timestamp': 'google/protobuf/timestamp.proto',
      'grpc.health.v1.HealthCheckResponse.ServingStatus': 'health/v1/health.proto',
    };
    const found = await ask(...Object.keys(files).map((value): Ask => ({ case: 'fileContainingSymbol', value })));
    expect(found.map(([first]) => first)).toEqual(Object.values(files));
  });

  it('answers an error for what does not exist, and goes on', async () => {
    const unknown: Ask[] = [
      { case: 'fileByFilename', value: 'nothing.proto' },
      { case: 'fileContainingSymbol', value: 'nothing' },
      { case: 'allExtensionNumbersOfType', value: APPS },
    ];
    expect(await ask(...unknown, undefined)).toEqual(Array(4).fill(['errorResponse']));
  });
});
