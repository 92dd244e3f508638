import { type DescService, fromBinary } from '@bufbuild/protobuf';
import { FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt';
import { Code, createClient } from '@connectrpc/connect';
import { ServerReflection } from '@latchkey/proto/grpc/reflection/v1/reflection_pb';
import { Health, HealthCheckResponse_ServingStatus as Status } from '@latchkey/proto/health/v1/health_pb';
import { ApplicationService } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { describe, expect, it } from 'vitest';
import { GRPC_PATH } from '../../testing/paths.ts';
import { testRoute } from '../../testing/servers.ts';

const APPS = ApplicationService.typeName;

/** A gRPC client of a server whose readiness can be changed. */
async function openClient<S extends DescService>(service: S) {
  let isReady = true;
  const checkReady = () => (isReady ? Promise.resolve() : Promise.reject(new Error('not ready')));
  const { transport } = await GRPC_PATH.open([testRoute(ApplicationService, {})], { checkReady });
  const setReady = (value: boolean) => {
    isReady = value;
  };
  return { client: createClient(service, transport), setReady };
}

describe('health', () => {
  it('lists the server and each of its services', async () => {
    const { client, setReady } = await openClient(Health);
    for (const status of [Status.SERVING, Status.NOT_SERVING]) {
      expect((await client.list({})).statuses).toMatchObject({ '': { status }, [APPS]: { status } });
      setReady(false);
    }
    expect(await client.check({ service: APPS })).toMatchObject({ status: Status.NOT_SERVING });
    await expect(client.check({ service: 'nothing' })).rejects.toMatchObject({ code: Code.NotFound });
  });

  it('sends watchers each change', async () => {
    const { client, setReady } = await openClient(Health);
    const watch = (service: string) => client.watch({ service })[Symbol.asyncIterator]();
    const statuses = watch(APPS);
    for (const status of [Status.SERVING, Status.NOT_SERVING, Status.SERVING]) {
      setReady(status === Status.SERVING);
      expect((await statuses.next()).value).toMatchObject({ status });
    }
    expect((await watch('nothing').next()).value).toMatchObject({ status: Status.SERVICE_UNKNOWN });
  });
});

describe('reflection', () => {
  type Case = 'listServices' | 'fileByFilename' | 'fileContainingSymbol' | 'allExtensionNumbersOfType';

  /** Names of the services or files of each response, or its kind. */
  async function ask(...requests: Array<readonly [Case, string] | []>) {
    const { client } = await openClient(ServerReflection);
    async function* given() {
      for (const [kind, value = ''] of requests) yield { host: 'h', ...(kind && { messageRequest: { case: kind, value } }) };
    }
    const responses: unknown[] = [];
    for await (const { messageResponse: response } of client.serverReflectionInfo(given())) {
      if (response.case === 'listServicesResponse') responses.push(response.value.service.map(({ name }) => name));
      else if (response.case !== 'fileDescriptorResponse') responses.push(response.case);
      else responses.push(response.value.fileDescriptorProto.map((bytes) => fromBinary(FileDescriptorProtoSchema, bytes).name));
    }
    return responses;
  }

  const file = 'latchkey/apps/v1/application.proto';

  it('lists every service, and each file with its imports', async () => {
    const imports = ['google/protobuf/timestamp.proto', 'latchkey/apps/v1/event.proto'];
    const files = [file, ...imports, 'google/protobuf/descriptor.proto', 'latchkey/rpc/v1/error.proto'];
    const services = [APPS, 'grpc.health.v1.Health', 'grpc.reflection.v1.ServerReflection'];
    const requests = [
      ['listServices', ''],
      ['fileByFilename', file],
      ['fileContainingSymbol', APPS],
    ] as const;
    expect(await ask(...requests)).toEqual([services, files, files]);
  });

  it.each([
    [`${APPS}.ListApplications`, file],
    ['latchkey.apps.v1.Application', file],
    ['latchkey.apps.v1.Application.name', file],
    ['google.protobuf.Timestamp', 'google/protobuf/timestamp.proto'],
    ['grpc.health.v1.HealthCheckResponse.ServingStatus', 'health/v1/health.proto'],
  ])('finds the file of %s', async (symbol, expected) => {
    expect(await ask(['fileContainingSymbol', symbol])).toMatchObject([{ 0: expected }]);
  });

  it('answers an error for what does not exist, and goes on', async () => {
    const unknown = ['fileByFilename', 'fileContainingSymbol', 'allExtensionNumbersOfType'] as const;
    const responses = await ask(...unknown.map((kind) => [kind, 'nothing'] as const), []);
    expect(responses).toEqual(Array(4).fill('errorResponse'));
  });
});
