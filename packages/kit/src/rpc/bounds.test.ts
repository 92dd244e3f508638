import { once } from 'node:events';
import {
  type ClientHttp2Session,
  connect as connectHttp2,
  constants,
  type Http2ServerRequest,
  type Http2ServerResponse,
} from 'node:http2';
import { connect as connectTcp, type Socket } from 'node:net';
import { Code, ConnectError, createClient } from '@connectrpc/connect';
import { Health, HealthCheckResponse_ServingStatus as Status } from '@latchkey/proto/health/v1/health_pb';
import { ApplicationService } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { eventually } from '@latchkey/testkit/eventually';
import { openRawClient } from '@latchkey/testkit/raw-client';
import { describe, expect, it, onTestFinished } from 'vitest';
import { fromConnectError } from '../errors.ts';
import { PATHS_TO_OUR_SERVER } from '../testing/paths.ts';
import { CREDENTIAL, startTestServer, testRoute } from '../testing/servers.ts';
import { listenForGrpc } from './grpc-listener.ts';
import type { PlainRoute } from './plain-route.ts';

/** A handler that answers when the test says so. */
function heldRoute() {
  const held: Array<() => void> = [];
  let gone = 0;
  const route = testRoute(ApplicationService, {
    async deleteApplication(_req, { signal }) {
      signal.addEventListener('abort', () => {
        gone += 1;
      });
      await new Promise<void>((resolve) => held.push(resolve));
      return {};
    },
  });
  return { route, held, gone: () => gone };
}

/** A session of HTTP/2 with no library over it. */
function openSession(url: string): ClientHttp2Session {
  const session = connectHttp2(url);
  session.on('error', () => undefined);
  onTestFinished(() => session.destroy());
  return session;
}

const call = {
  [constants.HTTP2_HEADER_METHOD]: 'POST',
  [constants.HTTP2_HEADER_PATH]: '/latchkey.apps.v1.ApplicationService/DeleteApplication',
  'content-type': 'application/grpc',
  authorization: `Bearer ${CREDENTIAL}`,
  te: 'trailers',
};

function openTcp(url: string, localAddress = '127.0.0.1'): Socket {
  const socket = connectTcp({ port: Number(new URL(url).port), host: '127.0.0.1', localAddress });
  socket.on('error', () => undefined).resume();
  onTestFinished(() => void socket.destroy());
  return socket;
}

describe.each(PATHS_TO_OUR_SERVER)('calls at once, $name', ({ open }) => {
  it('are refused beyond the bound, and no health with them, and taken again when one has ended', async () => {
    const { route, held } = heldRoute();
    const { transport } = await open([route], { callsAtOnce: 2 });
    const [client, health] = [createClient(ApplicationService, transport), createClient(Health, transport)];
    const under = [client.deleteApplication({}), client.deleteApplication({})];
    await eventually(() => held.length === 2);
    const refused = await client.deleteApplication({}).catch((err: unknown) => ConnectError.from(err));
    expect([(refused as ConnectError).code, fromConnectError(refused)?.reason]).toEqual([Code.Unavailable, 'too_many_calls']);
    expect(held).toHaveLength(2);
    expect((await health.check({})).status).toBe(Status.SERVING);
    held.shift()?.();
    await under[0];
    const next = client.deleteApplication({});
    await eventually(() => held.length === 2);
    for (const release of held) release();
    await Promise.all([...under, next]);
  });
});

it('bodies count as calls', async () => {
  const held: Array<() => void> = [];
  const body: PlainRoute = {
    method: 'PUT',
    path: '/body',
    needsCredential: true,
    async handle(_req, res) {
      await new Promise<void>((resolve) => held.push(resolve));
      res.end('done');
    },
  };
  const { url } = await startTestServer([], { plainRoutes: [body], callsAtOnce: 1 });
  const send = () => fetch(`${url}/body`, { method: 'PUT', body: 'x', headers: { authorization: `Bearer ${CREDENTIAL}` } });
  const first = send();
  await eventually(() => held.length === 1);
  expect([(await send()).status, held.length]).toEqual([503, 1]);
  held[0]?.();
  expect(await (await first).text()).toBe('done');
});

describe('connections', () => {
  it.each(['url', 'grpcUrl'] as const)('beyond the bound are closed at once, on either port (%s)', async (port) => {
    const server = await startTestServer([], { connectionsMax: 3 });
    const sockets = Array.from({ length: 8 }, () => openTcp(server[port]));
    await eventually(() => expect(sockets.filter(({ closed }) => closed)).toHaveLength(5));
    for (const socket of sockets) socket.destroy();
    await eventually(() => connects(server[port]));
  });

  it.each(['url', 'grpcUrl'] as const)(
    'of one address are closed beyond its share, and others are open to the rest (%s)',
    async (port) => {
      const server = await startTestServer([], { connectionsPerIp: 3 });
      const sockets = Array.from({ length: 8 }, () => openTcp(server[port], '127.0.0.2'));
      await eventually(() => expect(sockets.filter(({ closed }) => closed)).toHaveLength(5));
      expect(await connects(server[port])).toBe(true);
    },
  );

  it('for probes are of one address no more than its share', async () => {
    const { probePort } = await startTestServer([], { probePort: 0 });
    const sockets = Array.from({ length: 120 }, () => openTcp(`http://127.0.0.1:${probePort}`, '127.0.0.2'));
    await eventually(() => expect(sockets.filter(({ closed }) => closed)).toHaveLength(100));
    expect((await fetch(`http://127.0.0.1:${probePort}/healthz`)).status).toBe(200);
  });

  it.each(['url', 'grpcUrl'] as const)('whose client says nothing are closed soon (%s)', async (port) => {
    const server = await startTestServer([], { headMsMax: 100 });
    await once(openTcp(server[port]), 'close');
  });

  it('of HTTP/2 whose client has greeted stay, though it asks for nothing yet', async () => {
    const { grpcUrl } = await startTestServer([], { headMsMax: 100 });
    const greeted = openSession(grpcUrl);
    await once(greeted, 'remoteSettings');
    await once(openTcp(grpcUrl), 'close');
    expect(greeted.closed).toBe(false);
  });

  async function connects(url: string): Promise<boolean> {
    const socket = openTcp(url);
    await once(socket, 'connect');
    return Promise.race([
      once(socket, 'close').then(() => false),
      new Promise<boolean>((resolve) => setTimeout(resolve, 100, true)),
    ]);
  }
});

describe('a session of HTTP/2', () => {
  it('is closed when nothing was asked on it for a time, and not while a call is under way', async () => {
    const { route, held } = heldRoute();
    const { grpcUrl } = await startTestServer([route], { idleMsMax: 100 });
    const startedAt = performance.now();
    const [idle, busy] = [openSession(grpcUrl), openSession(grpcUrl)];
    const closed = once(idle, 'close');
    const stream = busy.request(call);
    stream.resume().end(Buffer.alloc(5));
    await eventually(() => held.length === 1);
    await closed;
    expect(performance.now() - startedAt).toBeGreaterThan(50);
    // Twice as long again, and nothing has come over it.
    await once(openSession(grpcUrl), 'close');
    expect(busy.closed).toBe(false);
    held[0]?.();
    await once(stream, 'close');
    await once(busy, 'close');
  });

  it('is closed when its client does not even greet', async () => {
    const { grpcUrl } = await startTestServer([], { idleMsMax: 100 });
    await once(openTcp(grpcUrl), 'close');
  });

  it('is gone though its client never ends its own side', async () => {
    const { grpcUrl } = await startTestServer([], { idleMsMax: 100, connectionsMax: 1 });
    const { socket } = await openRawClient(Number(new URL(grpcUrl).port));
    onTestFinished(() => void socket.destroy());
    await eventually(async () => {
      const session = openSession(grpcUrl);
      await Promise.race([
        once(session, 'remoteSettings'),
        once(session, 'close').then(() => Promise.reject(new Error('no room'))),
      ]);
    });
  });

  it('has a bound of calls at once, which its client is told', async () => {
    const { grpcUrl } = await startTestServer([]);
    const session = openSession(grpcUrl);
    await once(session, 'remoteSettings');
    expect(session.remoteSettings.maxConcurrentStreams).toBe(256);
  });

  it('is ended when its client resets calls as fast as it begins them, and others go on', async () => {
    const { route, held } = heldRoute();
    const { grpcUrl } = await startTestServer([route]);
    const [hasty, other] = [openSession(grpcUrl), openSession(grpcUrl)];
    await Promise.all([once(hasty, 'remoteSettings'), once(other, 'remoteSettings')]);
    let sent = 0;
    while (!hasty.closed && !hasty.destroyed && sent < 20_000) {
      for (let i = 0; i < 50 && !hasty.destroyed; i += 1, sent += 1) {
        const stream = hasty.request(call);
        stream.on('error', () => undefined).close(constants.NGHTTP2_CANCEL);
      }
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(sent).toBeLessThan(20_000);
    const stream = other.request(call);
    stream.resume().end(Buffer.alloc(5));
    await eventually(() => held.length > 0);
    for (const release of held) release();
    await once(stream, 'close');
  });
});

describe('a call over HTTP/2', () => {
  async function open(callMsMax: number) {
    const ended: string[] = [];
    const handle = (req: Http2ServerRequest, res: Http2ServerResponse) => {
      req.stream.once('close', () => ended.push(`${req.url} ${req.stream.rstCode}`));
      if (req.url === '/read') res.end('x'.repeat(1024 * 1024));
    };
    const bounds = { sessionsMax: 10, callMsMax, endless: new Set(['/endless']) };
    const listener = await listenForGrpc(handle, { host: '127.0.0.1', port: 0, ...bounds });
    onTestFinished(() => {
      listener.destroy();
      return listener.close();
    });
    const session = openSession(`http://127.0.0.1:${listener.port}`);
    const ask = (path: string) => session.request({ ...call, [constants.HTTP2_HEADER_PATH]: path }).on('error', () => undefined);
    return { ask, ended };
  }

  it('whose body never ends, or whose answer is never read, does not stay', async () => {
    const { ask, ended } = await open(100);
    ask('/write').write('a');
    ask('/read').end();
    await eventually(() => expect(ended.toSorted()).toEqual(['/read 8', '/write 8']));
  });

  it('that has no end stays', async () => {
    const { ask, ended } = await open(50);
    ask('/endless').write('a');
    ask('/write').write('a');
    await eventually(() => expect(ended).toEqual(['/write 8']));
    ask('/write').write('a');
    await eventually(() => expect(ended).toEqual(['/write 8', '/write 8']));
  });
});
