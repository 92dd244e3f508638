import { request as httpsRequest } from 'node:https';
import { connect as connectTcp } from 'node:net';
import { Readable } from 'node:stream';
import { Code, ConnectError, createClient, type Transport } from '@connectrpc/connect';
import { createGrpcTransport, Http2SessionManager } from '@connectrpc/connect-node';
import { Health, type HealthCheckResponse_ServingStatus as Status } from '@latchkey/proto/health/v1/health_pb';
import { ApplicationService, DeleteApplicationResponseSchema } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { createAuthority, type TestAuthority, writeTlsFiles } from '@latchkey/testkit/certificates';
import { eventually } from '@latchkey/testkit/eventually';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { memoryLogger } from '../testing/memory-logger.ts';
import { CREDENTIAL, startTestServer, testRoute } from '../testing/servers.ts';
import { certificateFolder, createPeer, type TestPeer } from '../testing/tls.ts';
import { ServiceTls } from '../tls/service-tls.ts';
import { bodyRoute, createBodyClient } from './body-call.ts';
import { createServiceTransport } from './transport.ts';

let authority: TestAuthority;
let stranger: TestAuthority;
beforeAll(async () => {
  [authority, stranger] = await Promise.all([createAuthority(), createAuthority('A stranger')]);
});

type Call = () => Promise<unknown>;

/** A server with TLS, and how often anything of it has been asked for. */
async function openServer(peer: TestPeer) {
  let asked = 0;
  const route = testRoute(ApplicationService, {
    async deleteApplication() {
      asked += 1;
      return {};
    },
  });
  const body = bodyRoute({
    path: '/body',
    output: DeleteApplicationResponseSchema,
    async handle(req) {
      asked += 1;
      for await (const _ of req);
      return {};
    },
  });
  const checkReady = async () => {
    asked += 1;
  };
  const server = await startTestServer([route], { plainRoutes: [body], tls: peer.tls, probePort: 0, checkReady });
  return { ...server, asked: () => asked };
}

/** A way of each kind to a server, as services go them. */
const WAYS: ReadonlyArray<{
  readonly name: string;
  open(urls: { url: string; grpcUrl: string }, tls: ServiceTls | undefined): Call;
}> = [
  {
    name: 'the lean path',
    open({ url }, tls) {
      const transport = createServiceTransport(url, CREDENTIAL, { tls });
      onTestFinished(() => transport.close());
      return () => createClient(ApplicationService, transport).deleteApplication({});
    },
  },
  {
    name: 'a stream over HTTP/1.1',
    open({ url }, tls) {
      const transport = createServiceTransport(url, CREDENTIAL, { tls });
      onTestFinished(() => transport.close());
      return () => firstStatus(transport);
    },
  },
  {
    name: 'a body',
    open({ url }, tls) {
      const client = createBodyClient(url, CREDENTIAL, tls);
      const call = { path: '/body', byteSize: 4, requestId: 'r', timeoutMs: 5_000 };
      return () => client.send({ ...call, body: Readable.from([Buffer.from('abcd')]) }, DeleteApplicationResponseSchema);
    },
  },
  {
    name: 'gRPC over HTTP/2',
    open({ grpcUrl }, tls) {
      const { cert, key, ca } = tls?.material ?? {};
      const nodeOptions = tls ? { cert, key, ca } : { ca: authority.ca };
      const sessionManager = new Http2SessionManager(grpcUrl, undefined, nodeOptions as object);
      onTestFinished(() => sessionManager.abort());
      const transport = createGrpcTransport({ baseUrl: grpcUrl, sessionManager });
      const headers = { authorization: `Bearer ${CREDENTIAL}` };
      return () => createClient(ApplicationService, transport).deleteApplication({}, { headers, timeoutMs: 5_000 });
    },
  },
];

async function firstStatus(transport: Transport): Promise<Status | undefined> {
  for await (const { status } of createClient(Health, transport).watch({}, { timeoutMs: 5_000 })) return status;
  return undefined;
}

const codeOf = (call: Call) =>
  call().then(
    () => 'answered',
    (err: unknown) => Code[ConnectError.from(err).code],
  );

describe.each(WAYS)('with TLS between services, $name', ({ open }) => {
  it('is open to who shows a certificate of the authority', async () => {
    const server = await openServer(await createPeer(authority));
    const { tls } = await createPeer(authority);
    expect(await codeOf(open(server, tls))).toBe('answered');
    expect(server.asked()).toBeGreaterThan(0);
  });

  it('is closed, before anything is asked, to who shows the certificate of a stranger, and to who shows none', async () => {
    const server = await openServer(await createPeer(authority));
    const { tls: foreign } = await createPeer(stranger, stranger.ca + authority.ca);
    for (const tls of [foreign, undefined]) {
      expect(['Unavailable', 'Unknown', 'Internal', 'Aborted', 'Canceled']).toContain(await codeOf(open(server, tls)));
    }
    expect(server.asked()).toBe(0);
    const msg = 'connections without TLS that can be trusted are refused';
    expect(server.lines).toMatchObject([{ level: 40, address: '127.0.0.1', reason: 'SELF_SIGNED_CERT_IN_CHAIN', msg }]);
  });

  it('does not lead to a stranger who has taken the place of the service', async () => {
    const server = await openServer(await createPeer(stranger, authority.ca + stranger.ca));
    const { tls } = await createPeer(authority);
    expect(await codeOf(open(server, tls))).not.toBe('answered');
    expect(server.asked()).toBe(0);
  });
});

describe('certificates that are replaced', () => {
  it('are used by both sides without a stop, and the ones before are refused then', async () => {
    const [serving, calling, late] = await Promise.all([createPeer(authority), createPeer(authority), createPeer(authority)]);
    const server = await openServer(serving);
    const ways = WAYS.map(({ open }) => open(server, calling.tls));
    for (const call of ways) expect(await codeOf(call)).toBe('answered');
    for (const peer of [serving, calling]) await peer.renew(await stranger.issue(), stranger.ca);
    // A pool may still hold connections, so that another one is asked; that of the test's own gRPC client has the old certificate.
    for (const { name, open } of WAYS) {
      expect(await codeOf(open(server, calling.tls)), name).toBe('answered');
      expect(await codeOf(open(server, late.tls)), name).not.toBe('answered');
    }
    // At once, so that a pool opens further connections beside those that it has.
    for (const call of ways.slice(0, 3)) {
      const codes = await Promise.all(Array.from({ length: 12 }, () => codeOf(call)));
      expect(new Set(codes)).toEqual(new Set(['answered']));
    }
  });

  it('are not taken while they do not belong together, which is said once', async () => {
    const peer = await createPeer(authority);
    const before = peer.tls.material;
    const { logger, lines } = memoryLogger();
    const other = await stranger.issue();
    await peer.renew({ cert: other.cert, key: before.key }, stranger.ca, logger);
    peer.tls.look(logger);
    expect(peer.tls.material).toBe(before);
    expect(lines).toMatchObject([
      { level: 50, problem: 'SERVICE_TLS_KEY_FILE is not the key of the certificate in SERVICE_TLS_CERT_FILE' },
    ]);
    await peer.renew(other, stranger.ca);
    expect(peer.tls.material.cert).toBe(other.cert);
  });

  it('are found by looking again and again', async () => {
    const dir = await certificateFolder();
    const tls = new ServiceTls(await writeTlsFiles(dir, await authority.issue(), authority.ca));
    tls.watch(memoryLogger().logger, 10);
    onTestFinished(() => tls.close());
    const next = await authority.issue();
    await writeTlsFiles(dir, next, authority.ca);
    await eventually(() => expect(tls.material.cert).toBe(next.cert));
  });
});

it('probes have a port of their own, in clear, which answers nothing else', async () => {
  const { probePort, url } = await openServer(await createPeer(authority));
  const probe = (path: string, method = 'GET') => fetch(`http://127.0.0.1:${probePort}${path}`, { method });
  expect([(await probe('/healthz')).status, (await probe('/readyz')).status]).toEqual([200, 200]);
  expect((await probe('/latchkey.apps.v1.ApplicationService/DeleteApplication')).status).toBe(404);
  expect((await probe('/readyz', 'POST')).status).toBe(405);
  await expect(
    new Promise((resolve, reject) => httpsRequest(`${url}/healthz`, { ca: authority.ca }, resolve).on('error', reject).end()),
  ).rejects.toThrow();
});

it('a connection without a handshake is closed', async () => {
  const { url } = await openServer(await createPeer(authority));
  const socket = connectTcp(Number(new URL(url).port), '127.0.0.1');
  onTestFinished(() => void socket.destroy());
  await eventually(() => socket.resume().closed, { timeoutMs: 15_000 });
}, 20_000);
