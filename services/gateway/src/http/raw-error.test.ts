import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { eventually } from '@latchkey/testkit/eventually';
import { exchangeBytes } from '@latchkey/testkit/network/raw-client';
import { describe, expect, it } from 'vitest';
import { ACCOUNT, SESSION, useTestGateway } from '../testing/test-gateway.ts';

/** Time of the fake sign-in, in which later requests of the connection could overtake it. */
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

const exchange = (bytes: string) => exchangeBytes(gateway.port, bytes);
const statusLines = (received: string) => received.match(/HTTP\/1\.1 \d{3}/g)?.map((line) => Number(line.slice(9))) ?? [];

const BODY = '{"email":"ada@example.com","password":"a long passphrase"}';
const SIGN_IN = `POST /api/v1/auth/sign-in HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${BODY.length}\r\n\r\n${BODY}`;

describe('the response to a broken request', () => {
  it('follows that to the request before it', async () => {
    const before = signIns;
    const received = await exchange(`${SIGN_IN}garbage\r\n\r\n`);
    expect(statusLines(received)).toEqual([200, 400]);
    expect(signIns - before).toBe(1);
  });

  it('follows the earlier ones also if only the body is broken', async () => {
    const chunked =
      'POST /api/v1/auth/sign-in HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n';
    expect(statusLines(await exchange(SIGN_IN.repeat(3) + chunked))).toEqual([200, 200, 200, 400]);
    expect(statusLines(await exchange(chunked))).toEqual([400]);
  });

  it('follows the earlier one also where Node would respond immediately', async () => {
    expect(statusLines(await exchange(`${SIGN_IN}GET / HTTP/1.1\r\nHost: x\r\nExpect: x\r\n\r\n`))).toEqual([200, 417]);
    expect(statusLines(await exchange(`${SIGN_IN}CONNECT a:1 HTTP/1.1\r\nHost: x\r\n\r\n`))).toEqual([200, 405]);
  });
});

describe('a client that goes away', () => {
  const ROUNDS = 16;

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
