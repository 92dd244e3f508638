import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { programEnv } from '@latchkey/testkit/process/program-env';
import { expect, it } from 'vitest';

const EXAMPLE = fileURLToPath(import.meta.resolve('@latchkey/examples/grpc/download-url.ts'));
// Closed ports.
const ADDRESSES = { LATCHKEY_APPS: '127.0.0.1:1', LATCHKEY_FILES: '127.0.0.1:1' };
const [CA, CERT, KEY] = ['CA', 'CERT', 'KEY'].map((name) => ({ [`LATCHKEY_TLS_${name}`]: '/nowhere.pem' }));

it.each([
  [
    'an address without a server',
    {},
    1,
    /^There is no answer from 127\.0\.0\.1:1: .*ECONNREFUSED.* \(request [0-9a-f-]{36}\)\n$/,
  ],
  ['a TLS file that can not be read', { ...CA, ...CERT, ...KEY }, 2, /^\/nowhere\.pem can't be read \(ENOENT\)\.\n$/],
  // With one of them misspelt, the credential would be sent in clear.
  ['TLS settings of which one is missing', { ...CA, ...CERT }, 2, /LATCHKEY_TLS_CA, LATCHKEY_TLS_CERT and LATCHKEY_TLS_KEY/],
])('the gRPC example names %s in one line', (_title, tls, code, line) => {
  const env = { ...programEnv(), LATCHKEY_CREDENTIAL: 'c'.repeat(32), ...ADDRESSES, ...tls };
  const { status, stderr } = spawnSync(process.execPath, [EXAMPLE, 'lk_http_x'], { env, encoding: 'utf8' });
  expect({ status, stderr }).toEqual({ status: code, stderr: expect.stringMatching(line) });
});
