import { once } from 'node:events';
import { constants } from 'node:http2';
import { Readable } from 'node:stream';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { Code, createClient } from '@connectrpc/connect';
import { createGrpcTransport, Http2SessionManager } from '@connectrpc/connect-node';
import { ApplicationService, DeleteApplicationResponseSchema } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { eventually } from '@latchkey/testkit/eventually';
import { createAuthority, type TestCertificate } from '@latchkey/testkit/network/certificates';
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { createBodyClient } from '../rpc/client/body-client.ts';
import { bodyRoute } from '../rpc/server/http-route.ts';
import { DELETE_APPLICATION, EMPTY, openSession, startCall } from '../testing/http2.ts';
import { memoryLogger } from '../testing/memory-logger.ts';
import { AUTHORIZATION, CREDENTIAL, codeOf, openTransport, startTestServer, testRoute } from '../testing/servers.ts';
import { createPeer, type TestPeer } from '../testing/tls.ts';
import { serverTlsOptions } from './server-tls.ts';
import type { ServiceTls } from './service-tls.ts';

const [authority, stranger] = await Promise.all([createAuthority(), createAuthority('A stranger')]);
afterEach(() => void vi.useRealTimers());

/** A server with TLS, and how often its handlers ran. `hold` makes calls wait for `release`. */
async function openServer(peer: TestPeer, hold = false, limits = {}) {
  const { promise: held, resolve: release } = Promise.withResolvers<void>();
  const handle = vi.fn(async () => {
    if (hold) await held;
    return {};
  });
  const route = testRoute(ApplicationService, { deleteApplication: handle });
  const output = DeleteApplicationResponseSchema;
  const httpRoute = bodyRoute({ path: '/body', output, handle: (req) => req.toArray().then(handle) });
  const server = await startTestServer([route], { httpRoutes: [httpRoute], tls: peer.tls, limits });
  const connect = async (port: 'url' | 'grpcUrl', own: TestCertificate, options = {}): Promise<TLSSocket> => {
    const ALPNProtocols = port === 'grpcUrl' ? ['h2'] : ['http/1.1'];
    const to = { port: Number(new URL(server[port]).port), host: '127.0.0.1', ca: authority.ca, ALPNProtocols };
    const socket = connectTls({ ...to, ...own, ...options }).on('error', () => undefined);
    onTestFinished(() => void socket.destroy());
    await once(socket, 'secureConnect');
    return socket;
  };
  return { ...server, connect, release, asked: () => handle.mock.calls.length };
}

/** Opens one kind of connection that services make. */
type Way = (urls: { url: string; grpcUrl: string }, tls: ServiceTls | undefined) => () => Promise<unknown>;

const WAYS: Readonly<Record<string, Way>> = {
  'a unary call': ({ url }, tls) => {
    const transport = openTransport(url, CREDENTIAL, tls);
    return () => createClient(ApplicationService, transport).deleteApplication({});
  },
  'a body': ({ url }, tls) => {
    const client = createBodyClient(url, CREDENTIAL, tls);
    const call = { path: '/body', byteSize: 4, requestId: 'r', timeoutMs: 5_000 };
    return () => client.send({ ...call, body: Readable.from([Buffer.from('abcd')]) }, DeleteApplicationResponseSchema);
  },
  'gRPC over HTTP/2': ({ grpcUrl }, tls) => {
    const nodeOptions = tls ? tls.files : { ca: authority.ca };
    const sessionManager = new Http2SessionManager(grpcUrl, undefined, nodeOptions);
    onTestFinished(() => sessionManager.abort());
    const { deleteApplication } = createClient(ApplicationService, createGrpcTransport({ baseUrl: grpcUrl, sessionManager }));
    return () => deleteApplication({}, { headers: { authorization: AUTHORIZATION }, timeoutMs: 5_000 });
  },
};

const overTls = (socket: TLSSocket) => openSession('https://localhost', () => socket);

describe.each(Object.entries(WAYS))('%s with TLS', (_name, open) => {
  it('needs a certificate of the authority, and logs a peer without one', async () => {
    const server = await openServer(await createPeer(authority));
    const { tls: foreign } = await createPeer(stranger, stranger.ca + authority.ca);
    for (const tls of [foreign, undefined]) {
      expect([Code.Unavailable, Code.Unknown, Code.Internal, Code.Aborted, Code.Canceled]).toContain(
        await codeOf(open(server, tls)()),
      );
    }
    expect(server.asked()).toBe(0);
    const msg = 'connections without TLS that can be trusted are rejected';
    expect(server.lines).toMatchObject([{ level: 40, address: '127.0.0.1', reason: 'SELF_SIGNED_CERT_IN_CHAIN', msg }]);
    expect(await codeOf(open(server, (await createPeer(authority)).tls)())).toBe('answered');
  });

  it('trusts no stranger that poses as the service', async () => {
    const server = await openServer(await createPeer(stranger, authority.ca + stranger.ca));
    expect(await codeOf(open(server, (await createPeer(authority)).tls)())).not.toBe('answered');
    expect(server.asked()).toBe(0);
  });
});

describe('replaced certificates', () => {
  it('are used by both sides without a stop, and the old ones are rejected', async () => {
    const [serving, calling, late] = await Promise.all([createPeer(authority), createPeer(authority), createPeer(authority)]);
    const server = await openServer(serving);
    const ways = Object.values(WAYS).map((open) => open(server, calling.tls));
    for (const call of ways) expect(await codeOf(call())).toBe('answered');
    for (const peer of [serving, calling]) await peer.renew(await stranger.issue(), stranger.ca);
    for (const open of Object.values(WAYS)) {
      expect(await codeOf(open(server, calling.tls)())).toBe('answered');
      expect(await codeOf(open(server, late.tls)())).not.toBe('answered');
    }
    // Concurrent, so that the pool opens connections. The gRPC client has the old certificate.
    for (const call of ways.slice(0, 2)) {
      const codes = await Promise.all(Array.from({ length: 12 }, () => codeOf(call())));
      expect(new Set(codes)).toEqual(new Set(['answered']));
    }
  });

  it('are not used while they do not match, which is logged once', async () => {
    const { tls, renew } = await createPeer(authority);
    const { logger, lines } = memoryLogger();
    const [before, other] = [tls.files, await stranger.issue()];
    await renew({ cert: other.cert, key: before.key }, stranger.ca, logger);
    tls.reload(logger);
    expect(tls.files).toBe(before);
    expect(lines).toMatchObject([{ level: 50, problem: expect.stringMatching(/^SERVICE_TLS_KEY_FILE is invalid: /) }]);
    await renew(other, stranger.ca);
    expect(tls.files.cert).toBe(other.cert);
  });

  it('are found within 5 seconds', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    const { tls, replace } = await createPeer(authority);
    tls.watch(memoryLogger().logger);
    onTestFinished(() => tls.close());
    const next = await authority.issue();
    await replace(next, authority.ca);
    vi.advanceTimersByTime(5_000);
    expect(tls.files.cert).toBe(next.cert);
  });
});

// Certificates end with a second: this leaves two to three to connect and call.
const SHORT_MS = 3_000;

it.each([
  ['its certificate expires', SHORT_MS, false],
  ['the authority is replaced', 3_600_000, true],
])('a connection ends, after its calls, when %s', async (_when, endsInMs, isReplaced) => {
  const peer = await createPeer(authority);
  const { connect, release, asked } = await openServer(peer, true);
  const own = await authority.issue({ endsInMs });
  const open = async () => [await connect('url', own), await connect('grpcUrl', own)] as const;
  const [idle, busy] = [await open(), await open()];
  overTls(idle[1]);
  const { seen } = startCall(overTls(busy[1]), DELETE_APPLICATION, EMPTY);
  let received = '';
  busy[0].on('data', (chunk) => {
    received += chunk;
  });
  const head = `POST ${DELETE_APPLICATION} HTTP/1.1\r\nHost: x\r\nAuthorization: ${AUTHORIZATION}\r\n`;
  busy[0].write(`${head}Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}`);
  await eventually(() => asked() === 2);
  const closed = Promise.all(idle.map((socket) => once(socket.resume(), 'close')));
  if (isReplaced) await peer.renew(await stranger.issue(), stranger.ca);
  await closed;
  expect(busy.map((socket) => socket.closed)).toEqual([false, false]);
  release();
  await eventually(() => expect(busy.map((socket) => socket.closed)).toEqual([true, true]));
  expect(received).toMatch(/^HTTP\/1\.1 200 /);
  expect(seen.status).toBe('0');
});

it('a watch is cut off when its client is no longer trusted', async () => {
  const peer = await createPeer(authority);
  const { connect } = await openServer(peer, false, { callMs: 200 });
  const socket = await connect('grpcUrl', await authority.issue());
  const { seen } = startCall(overTls(socket), '/grpc.health.v1.Health/Watch', EMPTY);
  await eventually(() => expect(seen.bytes).toBeGreaterThan(0));
  await peer.renew(await stranger.issue(), stranger.ca);
  await eventually(() => expect(seen.isClosed).toBe(true));
  expect(seen.rstCode).toBe(constants.NGHTTP2_CANCEL);
});

it.each([
  ['url', 'TLSv1.2'],
  ['url', 'TLSv1.3'],
  ['grpcUrl', 'TLSv1.3'],
] as const)('no TLS session is resumed, since it would outlive the certificate (%s, %s)', async (port, version) => {
  const peer = await createPeer(authority);
  const { connect } = await openServer(peer);
  const own = await authority.issue();
  const versions = { minVersion: version, maxVersion: version };
  for (const round of ['before renewal', 'after renewal']) {
    const first = await connect(port, own, versions);
    let session = first.getSession();
    first.on('session', (ticket) => {
      session = ticket;
    });
    if (port === 'url') first.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n');
    await once(first, 'data');
    const next = await connect(port, own, { ...versions, session });
    expect(next.isSessionReused(), round).toBe(false);
    await peer.renew(await authority.issue(), authority.ca);
  }
});

it('a connection without a handshake is closed within 5 seconds', async () => {
  expect(serverTlsOptions((await createPeer(authority)).tls)).toMatchObject({ handshakeTimeout: 5_000 });
});
