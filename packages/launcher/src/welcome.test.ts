import { stripVTControlCharacters } from 'node:util';
import { expect, it } from 'vitest';
import { realtimeUrl } from './addresses.ts';
import type { Latchkey } from './latchkey.ts';
import { welcome } from './welcome.ts';

const latchkey: Latchkey = {
  publicUrl: 'https://latchkey.example',
  realtimeUrl: 'ws://localhost:8081/api/v1/realtime',
  signUpOpen: true,
  hasDashboard: true,
  dataDir: '/data',
  logDir: '/data/logs',
  internal: { apps: { grpc: '127.0.0.1:9082', connect: 'http://127.0.0.1:8082' } },
  metrics: {},
  stopTimeoutMs: 0,
  failed: new Promise(() => undefined),
  stop: async () => undefined,
};
/** Without the colours, which a terminal or the variable `CI` adds. */
const textOf = (change: Partial<Latchkey>) => stripVTControlCharacters(welcome({ ...latchkey, ...change }, 'deployed', '1.5'));

it('the welcome names the addresses and a first call', () => {
  const text = textOf({});
  expect(text).toContain('Latchkey is running (deployed, ready in 1.5 s)');
  expect(text).toMatch(/^ {2}Dashboard {3}https:\/\/latchkey\.example$/m);
  expect(text).toMatch(/^ {2}Base URL {4}https:\/\/latchkey\.example$/m);
  expect(text).toMatch(/^ {2}apps {8}gRPC 127\.0\.0\.1:9082, Connect http:\/\/127\.0\.0\.1:8082$/m);
  expect(text).toMatch(/^ {4}https:\/\/latchkey\.example\/api\/v1\/auth\/sign-up$/m);
  expect(text).toMatch(
    /: npx latchkey login --sign-up --url https:\/\/latchkey\.example\nLive .*: npx latchkey listen <application>$/m,
  );
  const url = 'ws://localhost:9081/api/v1/realtime';
  expect(textOf({ realtimeUrl: url })).toContain(`npx latchkey listen <application> --url ${url}\n`);
});

it('the welcome suggests the accounts command where sign-up is closed', () => {
  const text = textOf({ signUpOpen: false });
  expect(text).toMatch(/^ {2}npm run accounts -- create --username grace --email grace@example\.com$/m);
  expect(text).not.toContain('sign-up');
  expect(textOf({ hasDashboard: false })).not.toContain('Dashboard');
});

it.each([
  ['0.0.0.0', 'ws://localhost:8081/api/v1/realtime'],
  ['127.0.0.1', 'ws://localhost:8081/api/v1/realtime'],
  ['::1', 'ws://[::1]:8081/api/v1/realtime'],
  ['gate.example', 'ws://gate.example:8081/api/v1/realtime'],
])('the URL of live connections on %s is the one for clients on this machine', (host, url) => {
  expect(realtimeUrl({ host, port: 8081 })).toBe(url);
});
