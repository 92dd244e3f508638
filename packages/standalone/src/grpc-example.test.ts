import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { programEnv } from '@latchkey/testkit/program-env';
import { expect, it, onTestFinished } from 'vitest';

const EXAMPLE = fileURLToPath(import.meta.resolve('@latchkey/examples/grpc/download-url.ts'));
const NAMES = ['LATCHKEY_TLS_CA', 'LATCHKEY_TLS_CERT', 'LATCHKEY_TLS_KEY'];

/** Counts who connects, and answers nobody. */
async function startListener() {
  let connections = 0;
  const server = createServer((socket) => {
    connections += 1;
    socket.destroy();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return { address: `127.0.0.1:${(server.address() as AddressInfo).port}`, connections: () => connections };
}

/** Runs the example; answers what it complains of, and its exit code. */
async function run(env: Record<string, string>) {
  const child = spawn(process.execPath, [EXAMPLE, 'lk_http_x'], {
    env: { ...programEnv(), LATCHKEY_CREDENTIAL: 'c'.repeat(32), ...env },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const [stderr, [code]] = await Promise.all([text(child.stderr), once(child, 'exit')]);
  return { stderr, code };
}

it('the gRPC example names the address where nobody answers, in one line', async () => {
  const { stderr, code } = await run({ LATCHKEY_APPS: '127.0.0.1:1', LATCHKEY_FILES: '127.0.0.1:1' });
  expect(code).toBe(1);
  expect(stderr).toMatch(/^There is no answer from 127\.0\.0\.1:1: .*ECONNREFUSED.* \(request [0-9a-f-]{36}\)\n$/);
});

it('the gRPC example names a TLS file that can not be read, in one line', async () => {
  const tls = Object.fromEntries(NAMES.map((name) => [name, '/nowhere.pem']));
  const { stderr, code } = await run({ LATCHKEY_APPS: '127.0.0.1:1', LATCHKEY_FILES: '127.0.0.1:1', ...tls });
  expect({ stderr, code }).toEqual({ stderr: "/nowhere.pem can't be read (ENOENT).\n", code: 2 });
});

it.each([1, 2, 3, 4, 5, 6])(
  'the gRPC example sends no credential in clear where some of its TLS settings are missing (%i)',
  async (some) => {
    const { address, connections } = await startListener();
    const given = Object.fromEntries(NAMES.filter((_, i) => some & (1 << i)).map((name) => [name, '/nowhere.pem']));
    const env = { ...programEnv(), LATCHKEY_CREDENTIAL: 'c'.repeat(32), LATCHKEY_APPS: address, LATCHKEY_FILES: address };
    const child = spawn(process.execPath, [EXAMPLE, 'lk_http_x'], {
      env: { ...env, ...given },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    const [stderr, [code]] = await Promise.all([text(child.stderr), once(child, 'exit')]);
    expect([code, connections()]).toEqual([2, 0]);
    for (const name of NAMES) expect(stderr).toContain(name);
  },
);
