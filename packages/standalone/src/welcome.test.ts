import { stripVTControlCharacters } from 'node:util';
import { describe, expect, it } from 'vitest';
import { realtimeUrl } from './addresses.ts';
import type { Latchkey } from './latchkey.ts';
import * as coloured from './welcome.ts';

const latchkey: Latchkey = {
  publicUrl: 'https://latchkey.example',
  realtimeUrl: 'ws://localhost:8081/api/v1/realtime',
  signUpOpen: true,
  dataDir: '/data',
  logDir: '/data/logs',
  internal: {},
  metrics: {},
  stopTimeoutMs: 0,
  failed: new Promise(() => undefined),
  stop: async () => undefined,
};

/** Without the colours, which a terminal or the variable `CI` adds. */
const welcome: typeof coloured.welcome = (...args) => stripVTControlCharacters(coloured.welcome(...args));

describe('the welcome', () => {
  it('says where everything is, and gives a first call', () => {
    const text = welcome(latchkey, 'standalone', '1.5');
    expect(text).toContain('Latchkey is running (standalone, ready in 1.5 s)');
    expect(text).toMatch(/^ {2}Base URL {4}https:\/\/latchkey\.example$/m);
    expect(text).toMatch(/^ {2}API docs {4}https:\/\/latchkey\.example\/docs$/m);
    expect(text).toMatch(/^ {2}Realtime {4}ws:\/\/localhost:8081\/api\/v1\/realtime$/m);
    expect(text).toMatch(/^ {2}Data {8}\/data$/m);
    expect(text).toMatch(/^ {4}https:\/\/latchkey\.example\/api\/v1\/auth\/sign-up$/m);
    expect(text).toMatch(/: LATCHKEY_SOCKET_KEY=<socketKey> npm run listen$/m);
  });

  it('gives a listener the URL where it is another than it takes by itself', () => {
    const url = 'ws://localhost:9081/api/v1/realtime';
    const text = welcome({ ...latchkey, realtimeUrl: url }, 'standalone', '1.5');
    expect(text).toContain(`: LATCHKEY_SOCKET_KEY=<socketKey> npm run listen -- --url ${url}\n`);
  });

  it('suggests no sign-up where there is none, but the command that makes accounts', () => {
    const text = welcome({ ...latchkey, signUpOpen: false }, 'standalone', '1.5');
    expect(text).toMatch(/auth\/sign-in$/m);
    expect(text).toMatch(/^ {2}npm run accounts -- create --username grace --email grace@example\.com$/m);
    expect(text).not.toContain('sign-up');
  });

  it('names where other services call each', () => {
    const internal = { apps: { grpc: '127.0.0.1:9082', connect: 'http://127.0.0.1:8082' } };
    const text = welcome({ ...latchkey, internal }, 'deployed', '1.5');
    expect(text).toMatch(/^ {2}apps {8}gRPC 127\.0\.0\.1:9082, Connect http:\/\/127\.0\.0\.1:8082$/m);
  });
});

it.each([
  ['0.0.0.0', 'ws://localhost:8081/api/v1/realtime'],
  ['::1', 'ws://[::1]:8081/api/v1/realtime'],
  ['gate.example', 'ws://gate.example:8081/api/v1/realtime'],
])('the URL of live connections on %s is the one for clients on this machine', (host, url) => {
  expect(realtimeUrl({ host, port: 8081 })).toBe(url);
});
