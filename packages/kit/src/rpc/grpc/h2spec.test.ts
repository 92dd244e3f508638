import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { findGoProgram } from '@latchkey/testkit/process/go-program';
import { describe, expect, it } from 'vitest';
import { startTestServer } from '../../testing/servers.ts';

const h2spec = await findGoProgram({ name: 'github.com/summerwind/h2spec', version: 'v2.2.1+incompatible' }, 'cmd/h2spec');
const reason = typeof h2spec === 'string' ? '' : ` (${h2spec.unavailable})`;

/** Cases that any HTTP/2 server of Node.js fails: it ignores the frame or closes the connection. */
const NODE_FAILS = [
  // It passes only where the frame arrives before the response has closed the stream.
  'half closed (remote): Sends a HEADERS frame',
  'closed: Sends a DATA frame after sending RST_STREAM frame',
  'closed: Sends a HEADERS frame after sending RST_STREAM frame',
  'closed: Sends a DATA frame',
  'closed: Sends a HEADERS frame',
  'Sends stream identifier that is numerically smaller than previous',
  'Sends PRIORITY frame that depend on itself',
  'Sends a PRIORITY frame with 0x0 stream identifier',
  'Sends a PING frame with ACK',
  'Sends multiple WINDOW_UPDATE frames increasing the flow control window to above 2^31-1 on a stream',
];

describe.skipIf(reason)(`h2spec, which checks HTTP/2 servers${reason}`, { timeout: 180_000 }, () => {
  it('passes the gRPC port, but for the cases that Node.js itself fails', async () => {
    const { grpcUrl } = await startTestServer([]);
    const args = ['--port', new URL(grpcUrl).port, '--timeout', '3'];
    const { stdout } = await promisify(execFile)(h2spec as string, args).catch((err) => err);
    const [, count] = /^(\d+) tests, /m.exec(stdout) ?? [];
    expect(Number(count)).toBeGreaterThan(100);
    const failures: string = stdout.split('Failures:').at(-1);
    const failed = [...failures.matchAll(/× \d+: (.*)$/gm)].map(([, name = '']) => name);
    expect(failed.filter((name) => !NODE_FAILS.includes(name))).toEqual([]);
  });
});
