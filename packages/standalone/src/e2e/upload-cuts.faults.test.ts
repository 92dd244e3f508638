import { eventually } from '@latchkey/testkit/eventually';
import { startTcpProxy, type TcpProxy } from '@latchkey/testkit/tcp-proxy';
import { afterAll, afterEach, beforeAll, describe, expect, inject, it } from 'vitest';
import { type OwnSubject, startOwnSubject, startSubjectForTest, tell, untilFree } from '../testing/faults/own-subject.ts';
import type { Cut } from '../testing/faults/upload-request.ts';
import { serviceProcessesOf } from '../testing/processes-on.ts';
import '../testing/provided.ts';

/** Promises R3: an upload that is cut anywhere is wholly absent, and its sender may send it again. */
const BYTE_SIZE = 1_300_017;

let subject: OwnSubject;
let proxy: TcpProxy;
beforeAll(async () => {
  // Longer than a test waits for it: one that is cut frees it, and does not let it run out.
  subject = await startOwnSubject({ env: { UPLOAD_LEASE_SECONDS: '10' } });
  proxy = await startTcpProxy(subject.instance.baseUrl);
});
afterEach(() => proxy.restore());
afterAll(async () => {
  await proxy.close();
  await subject.instance.stop();
});

const STAGES: readonly Cut['after'][] = ['nothing', 'half', 'all but a byte', 'all but the end mark'];
const namesOf = (rows: readonly { readonly name: string }[]) => rows.map(({ name }) => name);
let serial = 0;

describe.each([
  ['the client ending the connection', 'FIN'],
  ['the client resetting the connection', 'RST'],
  ['a proxy that dies', 'proxy'],
] as const)('an upload that is cut by %s', (_how, how) => {
  it.each(
    STAGES.flatMap((after) => [true, false].map((chunked) => ({ after, chunked }))).filter(
      ({ after, chunked }) => chunked || after !== 'all but the end mark',
    ),
  )('after $after of its body is wholly absent (chunked: $chunked)', async ({ after, chunked }) => {
    serial += 1;
    const fileName = `cut-${serial}`;
    const cut: Cut = { after, by: how === 'proxy' ? () => proxy.cut() : how, once: subject.receiving };
    const port = how === 'proxy' ? Number(new URL(proxy.url).port) : subject.instance.port;
    const outcome = await subject.upload(fileName, BYTE_SIZE, { chunked, cut, port });
    expect(tell(outcome)).toMatch(/^(lost|400 bad_request)$/);
    // The name is free, so there is no row; and nothing else is left.
    expect(tell(await untilFree(() => subject.upload(fileName, BYTE_SIZE)))).toBe('200');
    expect(namesOf(await subject.agreed())).toContain(fileName);
  });
});

it.runIf(inject('latchkeyInstance').shape === 'deployed').each(['gateway', 'files', 'apps'] as const)(
  'an upload whose %s is killed half way is wholly there if its sender is told so, and else wholly absent',
  async (victim) => {
    const [, pid] = serviceProcessesOf(subject.instance.pid).find(([name]) => name === victim) ?? [];
    const kill = async () => {
      await subject.receiving();
      process.kill(pid ?? 0, 'SIGKILL');
    };
    const killing = kill();
    const outcome = await subject.upload(`killed-${victim}`, BYTE_SIZE, { pieces: 20, pauseMs: 20 });
    await killing;
    expect(tell(outcome)).toBe({ gateway: 'lost', files: '503 INTERNAL_ERROR', apps: '200' }[victim]);
    const names = namesOf(await subject.agreed());
    expect(names.includes(`killed-${victim}`)).toBe(tell(outcome) === '200');
    const again = async () => expect(tell(await subject.upload(`again-${victim}`, BYTE_SIZE))).toBe('200');
    await eventually(again, { timeoutMs: 30_000, intervalMs: 200 });
  },
);

it('an upload that stalls until the deadline is told so, is wholly absent, and may be sent again at once', async () => {
  const own = await startSubjectForTest({ env: { UPLOAD_DEADLINE_SECONDS: '1' } });
  for (const after of ['nothing', 'half'] as const) {
    const startedAt = performance.now();
    const outcome = await own.upload('stalled', BYTE_SIZE, { cut: { after, by: () => undefined } });
    expect(tell(outcome)).toBe('408 upload_timeout');
    expect(performance.now() - startedAt).toBeLessThan(5_000);
    const again = await eventually(async () => {
      const told = tell(await own.upload(`after-${after}`, 100));
      // A healthy upload may miss a deadline of 1 s on a busy machine.
      expect(told).not.toBe('408 upload_timeout');
      return told;
    });
    expect(again).toBe('200');
    expect(namesOf(await own.agreed())).not.toContain('stalled');
  }
});
