import { once } from 'node:events';
import { type ClientHttp2Session, connect as connectHttp2, constants, type Http2ServerRequest } from 'node:http2';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { ApplicationService } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { createAuthority, type TestAuthority, type TestCertificate } from '@latchkey/testkit/certificates';
import { eventually } from '@latchkey/testkit/eventually';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { CREDENTIAL, startTestServer, testRoute } from '../testing/servers.ts';
import { createPeer } from '../testing/tls.ts';
import { listenForGrpc } from './grpc-listener.ts';

let authority: TestAuthority;
let stranger: TestAuthority;
beforeAll(async () => {
  [authority, stranger] = await Promise.all([createAuthority(), createAuthority('A stranger')]);
});

const PATH = '/latchkey.apps.v1.ApplicationService/DeleteApplication';
const AUTHORIZATION = `Bearer ${CREDENTIAL}`;
/** Time enough to connect and to ask, and not much more: up to a second less, as certificates end with a second. */
const SHORT_MS = 3_000;

/** A server with TLS whose calls are answered when the test says so. */
async function openServer() {
  const peer = await createPeer(authority);
  const held: Array<() => void> = [];
  const route = testRoute(ApplicationService, {
    async deleteApplication() {
      await new Promise<void>((resolve) => held.push(resolve));
      return {};
    },
  });
  const server = await startTestServer([route], { tls: peer.tls });
  const connect = (port: 'url' | 'grpcUrl', own: TestCertificate, options = {}) =>
    connectTo(Number(new URL(server[port]).port), own, port === 'grpcUrl', options);
  return { ...server, peer, held, connect };
}

async function connectTo(port: number, own: TestCertificate, isHttp2: boolean, options = {}): Promise<TLSSocket> {
  const ALPNProtocols = isHttp2 ? ['h2'] : ['http/1.1'];
  const socket = connectTls({ port, host: '127.0.0.1', ca: authority.ca, ALPNProtocols, ...own, ...options });
  socket.on('error', () => undefined);
  onTestFinished(() => void socket.destroy());
  await once(socket, 'secureConnect');
  return socket;
}

function sessionOver(socket: TLSSocket): ClientHttp2Session {
  const session = connectHttp2('https://localhost', { createConnection: () => socket });
  session.on('error', () => undefined);
  onTestFinished(() => session.destroy());
  return session;
}

/** A call over HTTP/2, and the status that it ends with. */
function call(session: ClientHttp2Session, path = PATH) {
  const headers = { ':method': 'POST', ':path': path, 'content-type': 'application/grpc', authorization: AUTHORIZATION };
  const stream = session.request({ ...headers, te: 'trailers' });
  const status = new Promise<unknown>((resolve) => {
    stream.on('trailers', (trailers) => resolve(trailers['grpc-status']));
    stream.on('error', () => undefined).on('close', () => resolve(`closed ${stream.rstCode}`));
  });
  stream.resume().end(Buffer.alloc(5));
  return status;
}

const HTTP1_CALL = [
  `POST ${PATH} HTTP/1.1`,
  'Host: x',
  'Content-Type: application/json',
  `Authorization: ${AUTHORIZATION}`,
  'Content-Length: 2',
  '',
  '{}',
].join('\r\n');

/** What makes the peer of a connection one to trust no more. */
const ENDS = [
  { what: 'its certificate expires', endsInMs: SHORT_MS, replace: false },
  { what: 'the authority is replaced', endsInMs: 3_600_000, replace: true },
];

describe.each(ENDS)('when $what, a client', ({ endsInMs, replace }) => {
  async function open() {
    const server = await openServer();
    const own = await authority.issue({ endsInMs });
    const end = async () => {
      if (replace) await server.peer.renew(await stranger.issue(), stranger.ca);
    };
    return { ...server, own, end };
  }

  it('of HTTP/2 is asked to leave, and what it asked for before is answered', async () => {
    const { connect, own, end, held } = await open();
    const [idle, busy] = await Promise.all([connect('grpcUrl', own), connect('grpcUrl', own)]);
    const goaway = once(idle, 'close');
    const session = sessionOver(busy);
    sessionOver(idle);
    const asked = call(session);
    await eventually(() => held.length === 1);
    await end();
    await goaway;
    await eventually(() => expect(session.closed).toBe(true));
    held[0]?.();
    expect(await asked).toBe('0');
    await eventually(() => expect(busy.closed).toBe(true));
  });

  it('of HTTP/1.1 has its connections closed, once they are answered', async () => {
    const { connect, own, end, held } = await open();
    const [idle, busy] = await Promise.all([connect('url', own), connect('url', own)]);
    let received = '';
    busy.on('data', (chunk) => {
      received += chunk;
    });
    busy.write(HTTP1_CALL);
    await eventually(() => held.length === 1);
    const closed = once(idle.resume(), 'close');
    await end();
    await closed;
    expect(busy.closed).toBe(false);
    held[0]?.();
    await eventually(() => expect(busy.closed).toBe(true));
    expect(received).toMatch(/^HTTP\/1\.1 200 /);
    expect(held).toHaveLength(1);
  });
});

it('a call that has no end is cut off where its client is not trusted any more', async () => {
  const peer = await createPeer(authority);
  const handle = (req: Http2ServerRequest) => void req.resume();
  const bounds = { sessionsMax: 10, callMsMax: 200, endless: new Set(['/endless']), tls: peer.tls };
  const listener = await listenForGrpc(handle, { host: '127.0.0.1', port: 0, ...bounds });
  onTestFinished(() => {
    listener.destroy();
    return listener.close();
  });
  const session = sessionOver(await connectTo(listener.port, await authority.issue(), true));
  const asked = call(session, '/endless');
  await once(session, 'remoteSettings');
  await peer.renew(await stranger.issue(), stranger.ca);
  expect(await asked).toBe(`closed ${constants.NGHTTP2_CANCEL}`);
});

describe.each(['url', 'grpcUrl'] as const)('what was negotiated on one connection (%s)', (port) => {
  it.each(['TLSv1.2', 'TLSv1.3'] as const)(
    'is of no use on the next, as it would outlive the certificate: %s',
    async (version) => {
      const { connect, peer } = await openServer();
      const own = await authority.issue();
      const versions = { minVersion: version, maxVersion: version };
      for (const round of ['before', 'after']) {
        const first = await connect(port, own, versions);
        let session = first.getSession();
        first.on('session', (ticket) => {
          session = ticket;
        });
        if (port === 'url') first.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n');
        await once(first, 'data');
        const next = await connect(port, own, { ...versions, session });
        expect(next.isSessionReused(), round).toBe(false);
        // The certificates of the server may have been renewed since it began.
        await peer.renew(await authority.issue(), authority.ca);
      }
    },
  );
});
