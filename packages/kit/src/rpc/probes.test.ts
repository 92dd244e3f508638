import { type DescService, fromBinary } from '@bufbuild/protobuf';
import { FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt';
import { Code, ConnectError, createClient } from '@connectrpc/connect';
import { createGrpcTransport, Http2SessionManager } from '@connectrpc/connect-node';
import { ServerReflection } from '@latchkey/proto/grpc/reflection/v1/reflection_pb';
import { ServerReflection as ServerReflectionAlpha } from '@latchkey/proto/grpc/reflection/v1alpha/reflection_pb';
import { Health, HealthCheckResponse_ServingStatus as Status } from '@latchkey/proto/health/v1/health_pb';
import { ApplicationService } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { eventually } from '@latchkey/testkit/eventually';
import { describe, expect, it, onTestFinished } from 'vitest';
import { PATHS_TO_OUR_SERVER } from '../testing/paths.ts';
import { startTestServer, testRoute } from '../testing/servers.ts';

const route = testRoute(ApplicationService, {});
const APPS = 'latchkey.apps.v1.ApplicationService';

/** A gRPC client without a credential, on a server whose readiness can be changed. */
async function openServer() {
  let ready = true;
  const server = await startTestServer([route], {
    checkReady: async () => {
      if (!ready) throw new Error('not ready');
    },
  });
  const sessionManager = new Http2SessionManager(server.grpcUrl);
  onTestFinished(() => sessionManager.abort());
  const transport = createGrpcTransport({ baseUrl: server.grpcUrl, sessionManager });
  const setReady = (value: boolean) => {
    ready = value;
  };
  return { ...server, transport, setReady, client: <S extends DescService>(service: S) => createClient(service, transport) };
}

describe('health', () => {
  // Our own client always shows a credential.
  it.each(PATHS_TO_OUR_SERVER.filter(({ name }) => !name.startsWith('lean client')))(
    'answers anyone: $name',
    async ({ open }) => {
      const { transport } = await open([route], { credential: '' });
      const health = createClient(Health, transport);
      expect((await health.check({})).status).toBe(Status.SERVING);
      expect((await health.check({ service: APPS })).status).toBe(Status.SERVING);
      const unknown = await health.check({ service: 'nothing' }).catch((err: unknown) => ConnectError.from(err).code);
      expect(unknown).toBe(Code.NotFound);
      for await (const { status } of health.watch({})) {
        expect(status).toBe(Status.SERVING);
        break;
      }
    },
  );

  it.each(PATHS_TO_OUR_SERVER)(
    'refuses who shows a credential that is not taken, so that a service learns of it: $name',
    async ({ open }) => {
      const { transport } = await open([route], { credential: 'wrong' });
      const refusal = await createClient(Health, transport)
        .check({})
        .catch((err: unknown) => ConnectError.from(err).code);
      expect(refusal).toBe(Code.Unauthenticated);
    },
  );

  it('lists the server and each of its services', async () => {
    const { client, setReady } = await openServer();
    expect((await client(Health).list({})).statuses).toMatchObject({
      '': { status: Status.SERVING },
      [APPS]: { status: Status.SERVING },
    });
    setReady(false);
    // One answer stands for a moment, for all who ask.
    await eventually(async () => (await client(Health).list({})).statuses[APPS]?.status === Status.NOT_SERVING);
    expect((await client(Health).check({})).status).toBe(Status.NOT_SERVING);
  });

  it('tells a watcher of each change', async () => {
    const { client, setReady } = await openServer();
    const statuses = client(Health).watch({ service: APPS })[Symbol.asyncIterator]();
    expect((await statuses.next()).value).toMatchObject({ status: Status.SERVING });
    setReady(false);
    expect((await statuses.next()).value).toMatchObject({ status: Status.NOT_SERVING });
    setReady(true);
    expect((await statuses.next()).value).toMatchObject({ status: Status.SERVING });
  });

  it('tells the watcher of an unknown service so, and goes on', async () => {
    const { client, stop } = await openServer();
    const statuses = client(Health).watch({ service: 'nothing' })[Symbol.asyncIterator]();
    expect((await statuses.next()).value).toMatchObject({ status: Status.SERVICE_UNKNOWN });
    const next = statuses.next().catch(() => 'ended');
    await stop();
    await next;
  });

  it('has probes over plain HTTP', async () => {
    const { url, setReady, lines } = await openServer();
    expect((await fetch(`${url}/healthz`)).status).toBe(200);
    expect((await fetch(`${url}/readyz`)).status).toBe(200);
    setReady(false);
    expect((await fetch(`${url}/healthz`)).status).toBe(200);
    await eventually(async () => (await fetch(`${url}/readyz`)).status === 503);
    expect(lines).toMatchObject([{ level: 40, msg: 'not ready', err: { message: 'not ready' } }]);
  });
});

describe.each([
  ['v1', ServerReflection],
  ['v1alpha', ServerReflectionAlpha as unknown as typeof ServerReflection],
])('reflection %s', (_version, service) => {
  type Ask = { case: 'listServices' | 'fileByFilename' | 'fileContainingSymbol' | 'allExtensionNumbersOfType'; value: string };

  async function ask(...requests: Array<Ask | undefined>) {
    const { client } = await openServer();
    async function* given() {
      for (const messageRequest of requests) yield { host: 'h', ...(messageRequest && { messageRequest }) };
    }
    const answers = [];
    for await (const answer of client(service).serverReflectionInfo(given())) answers.push(answer);
    return answers.map(({ messageResponse }) => messageResponse);
  }

  const filesIn = (response: Awaited<ReturnType<typeof ask>>[number] | undefined) =>
    response?.case === 'fileDescriptorResponse'
      ? response.value.fileDescriptorProto.map((bytes) => fromBinary(FileDescriptorProtoSchema, bytes).name)
      : response?.case;

  it('lists every service to anyone', async () => {
    const [answer] = await ask({ case: 'listServices', value: '' });
    const names = answer?.case === 'listServicesResponse' ? answer.value.service.map(({ name }) => name) : [];
    expect(names.toSorted()).toEqual([
      'grpc.health.v1.Health',
      'grpc.reflection.v1.ServerReflection',
      'grpc.reflection.v1alpha.ServerReflection',
      APPS,
    ]);
  });

  it('answers a file with all that it imports', async () => {
    const byName: Ask = { case: 'fileByFilename', value: 'latchkey/apps/v1/application.proto' };
    const bySymbol: Ask = { case: 'fileContainingSymbol', value: APPS };
    for (const answer of await ask(byName, bySymbol)) {
      expect(filesIn(answer)).toEqual([
        'latchkey/apps/v1/application.proto',
        'google/protobuf/timestamp.proto',
        'latchkey/apps/v1/event.proto',
      ]);
    }
  });

  it.each([
    [`${APPS}.ListApplications`, 'latchkey/apps/v1/application.proto'],
    ['latchkey.apps.v1.Application', 'latchkey/apps/v1/application.proto'],
    ['latchkey.apps.v1.Application.name', 'latchkey/apps/v1/application.proto'],
    ['latchkey.apps.v1.APPLICATION_STATUS_PAUSED', 'latchkey/apps/v1/application.proto'],
    ['google.protobuf.Timestamp', 'google/protobuf/timestamp.proto'],
    ['grpc.health.v1.HealthCheckResponse.ServingStatus', 'health/v1/health.proto'],
  ])('finds the file of %s', async (value, file) => {
    const [answer] = await ask({ case: 'fileContainingSymbol', value });
    expect(filesIn(answer)?.[0]).toBe(file);
  });

  it('answers an error for what is not there, and goes on', async () => {
    const answers = await ask(
      { case: 'fileByFilename', value: 'nothing.proto' },
      { case: 'fileContainingSymbol', value: 'nothing' },
      { case: 'allExtensionNumbersOfType', value: APPS },
      undefined,
    );
    const codes = answers.map((answer) => (answer.case === 'errorResponse' ? answer.value.errorCode : answer.case));
    expect(codes).toEqual([Code.NotFound, Code.NotFound, Code.NotFound, Code.InvalidArgument]);
  });
});
