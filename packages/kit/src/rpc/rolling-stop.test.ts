import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { connect as connectTls } from 'node:tls';
import { Code, ConnectError, createClient } from '@connectrpc/connect';
import { ApplicationService } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { createAuthority } from '@latchkey/testkit/certificates';
import { eventually } from '@latchkey/testkit/eventually';
import { openRawClient } from '@latchkey/testkit/raw-client';
import { describe, expect, it, onTestFinished } from 'vitest';
import { CREDENTIAL, startTcpServer, startTestServer, testRoute } from '../testing/servers.ts';
import { createPeer } from '../testing/tls.ts';
import type { ServiceTls } from '../tls/service-tls.ts';
import { createServiceTransport } from './transport.ts';

const NOT_TAKEN = 'HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n';
const SUCCESS = 'HTTP/1.1 200 OK\r\nContent-Type: application/proto\r\nContent-Length: 0\r\n\r\n';

function clientOf(url: string, tls?: ServiceTls) {
  const transport = createServiceTransport(url, CREDENTIAL, { tls });
  onTestFinished(() => transport.close());
  return createClient(ApplicationService, transport);
}

/** Answers the first request of each connection in turn with the given texts; the last one stays. */
async function startAnswering(...answers: string[]) {
  let requests = 0;
  const { port } = await startTcpServer((socket) => {
    socket.once('data', () => {
      socket.end(answers[Math.min(requests, answers.length - 1)] ?? '');
      requests += 1;
    });
  });
  return { client: clientOf(`http://127.0.0.1:${port}`), requests: () => requests };
}

describe('a call that comes to a connection as it is closed', () => {
  it('is sent again, also where it changes something: nobody has read it', async () => {
    const { client, requests } = await startAnswering(NOT_TAKEN, NOT_TAKEN, SUCCESS);
    await client.createApplication({});
    expect(requests()).toBe(3);
  });

  it('is not sent again for ever', async () => {
    const { client, requests } = await startAnswering(NOT_TAKEN);
    await expect(client.createApplication({})).rejects.toThrow();
    expect(requests()).toBe(4);
  });

  it('is not sent again where the answer is that of a handler', async () => {
    const body = '{"code":"deadline_exceeded"}';
    const timeout = `HTTP/1.1 408 Request Timeout\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
    const { client, requests } = await startAnswering(timeout, SUCCESS);
    const code = await client.createApplication({}).catch((err: unknown) => ConnectError.from(err).code);
    expect([code, requests()]).toEqual([Code.DeadlineExceeded, 1]);
  });
});

describe.each(['in clear', 'with TLS'])('a server that stops, %s', (how) => {
  const peers = async () => {
    const authority = how === 'with TLS' ? await createAuthority() : undefined;
    return authority && { serving: (await createPeer(authority)).tls, calling: (await createPeer(authority)).tls };
  };

  it('says on connections that nobody uses that it has read nothing, and goes on with a call under way meanwhile', async () => {
    const tls = await peers();
    const { promise: mayEnd, resolve: end } = Promise.withResolvers<void>();
    let calls = 0;
    const route = testRoute(ApplicationService, {
      async createApplication() {
        calls += 1;
        await mayEnd;
        return { applicationId: 'made' };
      },
    });
    const { url, stop } = await startTestServer([route], { tls: tls?.serving });
    const call = clientOf(url, tls?.calling).createApplication({});
    await eventually(() => calls === 1);
    const told = await openIdle(url, tls?.calling);
    const stopped = stop();
    // By then, whatever is taken for idle has been closed.
    expect(await told()).toBe(NOT_TAKEN);
    end();
    expect((await call).applicationId).toBe('made');
    await stopped;
  });

  it('loses no call of a client that goes on with another one meanwhile, whatever it changes', async () => {
    const tls = await peers();
    let calls = 0;
    const route = testRoute(ApplicationService, {
      async createApplication() {
        calls += 1;
        return {};
      },
    });
    for (let round = 0; round < 5; round += 1) {
      const options = { tls: tls?.serving };
      const [first, second] = [await startTestServer([route], options), await startTestServer([route], options)];
      const balancer = await startBalancer(first.url, second.url);
      const client = clientOf(balancer.url, tls?.calling);
      let answered = 0;
      let stopped = false;
      const failures: unknown[] = [];
      const work = async () => {
        while (!stopped) {
          await client.createApplication({}).then(
            () => {
              answered += 1;
            },
            (err: unknown) => failures.push(err),
          );
        }
      };
      calls = 0;
      const working = Promise.all(Array.from({ length: 8 }, work));
      await eventually(() => answered > 50);
      balancer.leave(first.url);
      await first.stop();
      const before = answered;
      await eventually(() => answered > before + 50);
      stopped = true;
      await working;
      expect(failures).toEqual([]);
      // Each was done once, and none twice.
      expect(calls).toBe(answered);
      await second.stop();
    }
  });
});

/** Opens a connection and asks for nothing on it. Answers how to wait until it is closed, and learn what was told. */
async function openIdle(url: string, tls: ServiceTls | undefined): Promise<() => Promise<string>> {
  const port = Number(new URL(url).port);
  const socket = tls ? connectTls({ port, host: '127.0.0.1', secureContext: tls.context }) : connect(port, '127.0.0.1');
  onTestFinished(() => void socket.destroy());
  let told = '';
  socket.setEncoding('latin1').on('data', (text) => {
    told += text;
  });
  const closed = once(socket, 'close');
  await once(socket, tls ? 'secureConnect' : 'connect');
  return async () => {
    await closed;
    return told;
  };
}

describe('what begins on a connection that is open still when a server stops, with nothing under way by then,', () => {
  /** Longer than streams are let go on once nothing is under way. */
  const LONG_MS = 2_000;

  it('may take as long as it likes: a body', async () => {
    let begun = false;
    const handle = async (req: IncomingMessage, res: ServerResponse) => {
      begun = true;
      res.end(String((await buffer(req)).byteLength));
    };
    const route = { method: 'PUT', path: '/body', needsCredential: false, handle } as const;
    const { url, stop } = await startTestServer([], { plainRoutes: [route] });
    const { socket, received } = await openRawClient(Number(new URL(url).port));
    const stopped = stop();
    const startedAt = performance.now();
    socket.write('PUT /body HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n12345');
    await eventually(() => begun);
    await eventually(() => performance.now() - startedAt > LONG_MS);
    socket.write('67890');
    await stopped;
    expect(received()).toMatch(/^HTTP\/1\.1 200 OK\r\n.*\r\n\r\n10/s);
    socket.destroy();
  });

  it('may take as long as it likes: a call', async () => {
    const { promise: held, resolve: release } = Promise.withResolvers<void>();
    const begun: AbortSignal[] = [];
    const route = testRoute(ApplicationService, {
      async createApplication(_req, { signal }) {
        begun.push(signal);
        await held;
        return {};
      },
      getApplicationSettings: async () => ({}),
    });
    const { url, stop } = await startTestServer([route]);
    const client = clientOf(url);
    // It leaves a connection that waits for its next use.
    await client.getApplicationSettings({});
    const stopped = stop();
    const startedAt = performance.now();
    const call = client.createApplication({});
    call.catch(() => undefined);
    await eventually(() => begun.length === 1);
    await eventually(() => performance.now() - startedAt > LONG_MS);
    expect(begun[0]?.aborted).toBe(false);
    release();
    await call;
    await stopped;
  });
});

/** Spreads connections over servers until one leaves. */
async function startBalancer(...urls: string[]) {
  const targets = [...urls];
  let turn = 0;
  const { port } = await startTcpServer((socket) => {
    turn += 1;
    const upstream = connect(Number(new URL(targets[turn % targets.length] as string).port), '127.0.0.1');
    upstream.on('error', () => socket.destroy()).on('close', () => socket.destroySoon());
    socket.on('close', () => upstream.destroy());
    socket.pipe(upstream).pipe(socket);
  });
  const leave = (url: string) => void targets.splice(targets.indexOf(url), 1);
  return { url: `${new URL(urls[0] as string).protocol}//127.0.0.1:${port}`, leave };
}
