import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { connect as connectHttp2 } from 'node:http2';
import { createClient } from '@connectrpc/connect';
import { ServerReflection } from '@latchkey/proto/grpc/reflection/v1/reflection_pb';
import { Health } from '@latchkey/proto/health/v1/health_pb';
import { ApplicationService } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { openRawClient } from '@latchkey/testkit/raw-client';
import { describe, expect, it, onTestFinished } from 'vitest';
import { memoryLogger } from '../testing/memory-logger.ts';
import { PATHS_TO_OUR_SERVER } from '../testing/paths.ts';
import { CREDENTIAL, startTcpServer, startTestServer, testRoute } from '../testing/servers.ts';
import { startRpcServer } from './server.ts';
import { createServiceTransport } from './transport.ts';

describe('an ordered stop', () => {
  it.each(PATHS_TO_OUR_SERVER)('lets a call under way end: $name', async ({ open }) => {
    const started = Promise.withResolvers<void>();
    const answer = Promise.withResolvers<void>();
    let aborted = false;
    const route = testRoute(ApplicationService, {
      async deleteApplication(_req, { signal }) {
        started.resolve();
        await answer.promise;
        aborted = signal.aborted;
        return {};
      },
    });
    const { transport, stop } = await open([route]);
    const call = createClient(ApplicationService, transport).deleteApplication({});
    await started.promise;
    const stopped = stop?.();
    answer.resolve();
    await call;
    await stopped;
    expect(aborted).toBe(false);
  });

  it('takes no new connection', async () => {
    const { stop, url } = await startTestServer([]);
    await stop();
    await expect(fetch(`${url}/healthz`)).rejects.toThrow();
  });

  it('does not wait for idle connections, of whatever protocol', async () => {
    const { stop, url, grpcUrl } = await startTestServer([]);
    const agent = new Agent({ keepAlive: true });
    onTestFinished(() => agent.destroy());
    await new Promise<void>((resolve, reject) => {
      request(`${url}/healthz`, { agent }, (res) => res.resume().on('end', resolve))
        .on('error', reject)
        .end();
    });
    const session = connectHttp2(grpcUrl);
    onTestFinished(() => session.destroy());
    await new Promise((resolve) => session.once('remoteSettings', resolve));
    await stop();
  });

  it('does not wait for a client that never ends its own side of a session', async () => {
    const { stop, grpcUrl } = await startTestServer([]);
    const { socket } = await openRawClient(Number(new URL(grpcUrl).port));
    onTestFinished(() => void socket.destroy());
    socket.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
    await once(socket, 'data');
    await stop();
  });

  it('ends streams that would go on for ever', async () => {
    const { stop, url } = await startTestServer([]);
    const transport = createServiceTransport(url, CREDENTIAL);
    onTestFinished(() => transport.close());
    const watch = createClient(Health, transport).watch({})[Symbol.asyncIterator]();
    await watch.next();
    const rest = watch.next().catch(() => undefined);
    await stop();
    await rest;
  });

  it('ends a stream whose client asks nothing more', async () => {
    const { stop, url } = await startTestServer([]);
    const transport = createServiceTransport(url, CREDENTIAL);
    onTestFinished(() => transport.close());
    const never = Promise.withResolvers<never>();
    async function* requests() {
      yield { messageRequest: { case: 'listServices' as const, value: '' } };
      yield await never.promise;
    }
    const answers = createClient(ServerReflection, transport).serverReflectionInfo(requests())[Symbol.asyncIterator]();
    await answers.next().catch(() => undefined);
    await stop();
  });
});

it('fails to start, and leaves nothing open, when a port is taken', async () => {
  const { port } = await startTcpServer(() => undefined);
  const base = {
    routes: [],
    logger: memoryLogger().logger,
    credentials: [],
    checkReady: async () => undefined,
    host: '127.0.0.1',
  };
  await expect(startRpcServer({ ...base, port: 0, grpcPort: port })).rejects.toThrow('EADDRINUSE');
  await expect(startRpcServer({ ...base, port, grpcPort: 0 })).rejects.toThrow('EADDRINUSE');
});
