import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { eventually } from '@latchkey/testkit/eventually';
import { describe, expect, it } from 'vitest';
import { ACCOUNT, SESSION, useTestGateway } from '../testing/test-gateway.ts';

/** How long the fake sign-in takes, so that what follows on the connection overtakes it if it can. */
const SIGN_IN_MS = 30;

let signIns = 0;
const gateway = useTestGateway({
  accounts: {
    signIn: async () => {
      await delay(SIGN_IN_MS);
      signIns += 1;
      return { account: ACCOUNT, session: SESSION };
    },
  },
});

const uncaught: unknown[] = [];
process.on('uncaughtException', (err) => uncaught.push(err));

/** All that the server sends until it closes the connection. */
async function exchange(bytes: string): Promise<string> {
  const socket = connect(gateway.port, '127.0.0.1');
  let received = '';
  socket.setEncoding('latin1').on('data', (text: string) => {
    received += text;
  });
  socket.write(bytes, 'latin1');
  await new Promise((resolve) => socket.once('close', resolve));
  return received;
}

const statusLines = (received: string) => received.match(/HTTP\/1\.1 \d{3}/g)?.map((line) => Number(line.slice(9))) ?? [];

const BODY = '{"email":"ada@example.com","password":"a long passphrase"}';
const SIGN_IN = `POST /api/v1/auth/sign-in HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${BODY.length}\r\n\r\n${BODY}`;

describe('what Node would answer by itself', () => {
  it.each([
    ['no HTTP', 'garbage\r\n\r\n', 400],
    ['an unknown method', 'FOO / HTTP/1.1\r\nHost: x\r\n\r\n', 400],
    ['HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 400],
    ['headers without end', `GET / HTTP/1.1\r\nHost: x\r\nX-A: ${'a'.repeat(20_000)}\r\n\r\n`, 431, 'header'],
    ['an unknown expectation', 'GET /healthz HTTP/1.1\r\nHost: x\r\nExpect: x\r\n\r\n', 417, 'header.expect'],
    ['CONNECT', 'CONNECT example.com:443 HTTP/1.1\r\nHost: x\r\n\r\n', 405],
    [
      'a length that is given in two ways',
      'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n',
      400,
    ],
    ['no host', 'GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n', 400, 'header.host'],
    ['a host with a user', 'GET /healthz HTTP/1.1\r\nHost: localhost@evil.com\r\nConnection: close\r\n\r\n', 400, 'header.host'],
    ['HTTP/2.0 as a version', 'GET /healthz HTTP/2.0\r\nHost: x\r\nConnection: close\r\n\r\n', 400],
    ['two hosts', 'GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\nhost: b\r\n\r\n', 400, 'header.host'],
  ])('wears the envelope: %s', async (_what, bytes, status, path = 'request') => {
    const received = await exchange(bytes);
    const [head = '', body = ''] = received.split('\r\n\r\n');
    expect(statusLines(received)).toEqual([status]);
    expect(head).toMatch(/^x-request-id: [0-9a-f-]{36}$/im);
    expect(head).toMatch(/^content-type: application\/json; charset=utf-8$/im);
    const envelope = { success: false, code: 'bad_request', message: 'The request is not valid HTTP' };
    expect(JSON.parse(body)).toEqual({ ...envelope, details: [{ path, message: expect.stringMatching(/^must /) }] });
  });

  it('names the allowed methods where it refuses one', async () => {
    expect(await exchange('CONNECT example.com:443 HTTP/1.1\r\nHost: x\r\n\r\n')).toMatch(/^allow: \S/im);
  });
});

describe('a broken request behind a whole one', () => {
  it('is answered after it', async () => {
    const before = signIns;
    const received = await exchange(`${SIGN_IN}garbage\r\n\r\n`);
    expect(statusLines(received)).toEqual([200, 400]);
    expect(signIns - before).toBe(1);
  });

  it('waits for what came before it also when its body is what is broken', async () => {
    const chunked =
      'POST /api/v1/auth/sign-in HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n';
    expect(statusLines(await exchange(SIGN_IN.repeat(3) + chunked))).toEqual([200, 200, 200, 400]);
    expect(statusLines(await exchange(chunked))).toEqual([400]);
  });

  it('waits also when Node would have answered it by itself', async () => {
    expect(statusLines(await exchange(`${SIGN_IN}GET / HTTP/1.1\r\nHost: x\r\nExpect: x\r\n\r\n`))).toEqual([200, 417]);
    expect(statusLines(await exchange(`${SIGN_IN}CONNECT a:1 HTTP/1.1\r\nHost: x\r\n\r\n`))).toEqual([200, 405]);
  });
});

describe('a client that goes away', () => {
  const ROUNDS = 40;

  async function abandon(bytes: string, when: (socket: Socket) => Promise<unknown>): Promise<void> {
    const socket = connect(gateway.port, '127.0.0.1');
    socket.on('error', () => undefined);
    socket.resume().write(bytes);
    await when(socket);
    socket.resetAndDestroy();
  }

  it.each([
    ['CONNECT', 'CONNECT example.com:443 HTTP/1.1\r\nHost: x\r\n\r\n'],
    ['CONNECT with more behind it', `CONNECT example.com:443 HTTP/1.1\r\nHost: x\r\n\r\n${'x'.repeat(100_000)}`],
    ['an unknown expectation', 'GET / HTTP/1.1\r\nHost: x\r\nExpect: x\r\n\r\n'],
    ['an upgrade', 'GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n'],
    ['garbage', 'garbage\r\n\r\n'],
    ['a sign-in', SIGN_IN],
    ['half a sign-in', SIGN_IN.slice(0, -10)],
    ['a sign-in and garbage', `${SIGN_IN}garbage\r\n\r\n`],
  ])('after %s ends nothing but its connection', async (_what, bytes) => {
    const moments = [
      () => Promise.resolve(),
      () => new Promise((resolve) => setImmediate(resolve)),
      (socket: Socket) => new Promise((resolve) => socket.once('connect', resolve)),
      (socket: Socket) =>
        Promise.race([new Promise((resolve) => socket.once('data', resolve).once('close', resolve)), delay(20)]),
    ];
    for (let i = 0; i < ROUNDS; i += moments.length) await Promise.all(moments.map((when) => abandon(bytes, when)));
    await eventually(
      async () => statusLines(await exchange('GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'))[0] === 200,
    );
    expect(uncaught).toEqual([]);
  });
});
