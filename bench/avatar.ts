import { fork } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import sharp from 'sharp';
import { type Caller, prepareCaller } from './account.ts';
import { post, uploadAvatar } from './avatar-requests.ts';
import { convertBare } from './bare-avatar.ts';
import { type Servers, type Shape, type Side, startBaseline, startOurs } from './ours.ts';
import { commandOf, cpuSecondsOf } from './process-tree.ts';
import { type Figure, median, range } from './report.ts';

/** Images that one side takes in a round: the system counts time in hundredths of a second. */
const AVATARS_A_ROUND = 40;
/** Rounds before those that count: code that a server runs is compiled after some hundred requests. */
const WARM_UPS = 5;
const UPLOADS_AT_ONCE = 16;
const LATENCY_ROUNDS = 5;
const LATENCY_REQUESTS = 400;
const UPLOADS_TIMEOUT_MS = 60_000;

const UPLOADS_PROGRAM = fileURLToPath(new URL('./avatar-uploads-main.ts', import.meta.url));

/** A photograph as telephones make them: 12 megapixels in some 2.5 MiB. */
function makePhoto(): Promise<Buffer> {
  const noise = { type: 'gaussian' as const, mean: 128, sigma: 30 };
  return sharp({ create: { width: 4_000, height: 3_000, channels: 3, background: '#000', noise } })
    .jpeg({ quality: 60 })
    .toBuffer();
}

/**
 * F8: CPU for an avatar of 12 megapixels, in turns with two baselines: a bare handler that takes the same body and has the library do the same to it, and
 * the library alone. Receiving such a body costs a sixth of what its conversion does, whoever receives it (ADR 15).
 */
export async function measureAvatarCpu(servers: Servers, shape: Shape, rounds: number): Promise<Figure[]> {
  const [ours, bare] = await Promise.all([startOurs(servers, shape), startBaseline(servers)]);
  try {
    const photo = await makePhoto();
    const caller = await prepareCaller(ours.baseUrl);
    const found = { ours: [] as number[], decoder: [] as number[], handler: [] as number[], library: [] as number[] };
    const send = {
      ours: () => uploadAvatar(ours.baseUrl, caller, photo),
      bare: () => post(`${bare.baseUrl}/avatar`, {}, photo),
      library: () => convertBare(photo),
    };
    for (const one of Object.values(send)) for (let warmUp = 0; warmUp < WARM_UPS; warmUp += 1) await repeat(one);
    for (let round = 0; round < rounds; round += 1) {
      const before = { all: cpuSecondsOf(ours.measured()), decoders: cpuSecondsOf(decodersOf(ours)) };
      await repeat(send.ours);
      found.ours.push(msEach(cpuSecondsOf(ours.measured()) - before.all));
      found.decoder.push(msEach(cpuSecondsOf(decodersOf(ours)) - before.decoders));
      const bareBefore = cpuSecondsOf(bare.measured());
      await repeat(send.bare);
      found.handler.push(msEach(cpuSecondsOf(bare.measured()) - bareBefore));
      const start = process.cpuUsage();
      await repeat(send.library);
      const { user, system } = process.cpuUsage(start);
      found.library.push(msEach((user + system) / 1_000_000));
    }
    const what = `avatar of 12 megapixels in ${(photo.length / 1024 / 1024).toFixed(1)} MiB, ${shape}, CPU`;
    return [
      compare(`${what}, over a bare handler`, found.ours, found.handler, shape === 'standalone' ? '≤ 1.2' : ''),
      compare(`${what} of the decoder, over the library`, found.decoder, found.library, '≤ 1.2'),
      compare(`${what}, over the library`, found.ours, found.library, ''),
    ];
  } finally {
    await Promise.all([ours.child.stop(), bare.child.stop()]);
  }
}

async function repeat(send: () => Promise<unknown>): Promise<void> {
  for (let i = 0; i < AVATARS_A_ROUND; i += 1) await send();
}

const msEach = (seconds: number) => (seconds / AVATARS_A_ROUND) * 1_000;
const decodersOf = (ours: Side) => ours.measured().filter(({ pid }) => commandOf(pid).includes('decoder-process'));

function compare(what: string, ours: readonly number[], baseline: readonly number[], goal: string): Figure {
  const ratios = ours.map((ms, round) => ms / (baseline[round] ?? 0));
  return {
    id: 'F8',
    what,
    value: `${median(ours).toFixed(1)} ms`,
    baseline: `${median(baseline).toFixed(1)} ms`,
    result: `${median(ratios).toFixed(2)} (${range(ratios, 2)})`,
    goal,
  };
}

/** The median of another route while 16 avatars are uploaded at once, again and again, over the median while none is. */
export async function measureAvatarLatency(servers: Servers, shape: Shape): Promise<Figure> {
  const ours = await startOurs(servers, shape);
  try {
    const photo = await makePhoto();
    const callers = await Promise.all(Array.from({ length: UPLOADS_AT_ONCE }, () => prepareCaller(ours.baseUrl)));
    const [reader] = callers as [Caller];
    await readSome(ours.baseUrl, reader);
    const photoPath = join(servers.dataDir, 'photo.jpg');
    await writeFile(photoPath, photo);
    const found = { busy: [] as number[], quiet: [] as number[], ratio: [] as number[] };
    for (let round = 0; round < LATENCY_ROUNDS; round += 1) {
      const quiet = median(await readSome(ours.baseUrl, reader));
      const uploads = fork(UPLOADS_PROGRAM);
      uploads.send({ baseUrl: ours.baseUrl, callers, photoPath });
      await once(uploads, 'message', { signal: AbortSignal.timeout(UPLOADS_TIMEOUT_MS) });
      const busy = median(await readSome(ours.baseUrl, reader));
      uploads.send('stop');
      const [code] = await once(uploads, 'exit', { signal: AbortSignal.timeout(UPLOADS_TIMEOUT_MS) });
      if (code !== 0) throw new Error('The uploads failed');
      found.busy.push(busy);
      found.quiet.push(quiet);
      found.ratio.push(busy / quiet);
    }
    return {
      id: 'F8',
      what: `another route's median while ${UPLOADS_AT_ONCE} avatars are uploaded at once, ${shape}`,
      value: `${median(found.busy).toFixed(2)} ms`,
      baseline: `${median(found.quiet).toFixed(2)} ms`,
      result: `${median(found.ratio).toFixed(2)} (${range(found.ratio, 2)})`,
      goal: '',
    };
  } finally {
    await ours.child.stop();
  }
}

/** Times of one request after the other, in milliseconds. */
async function readSome(baseUrl: string, { headers, applicationId }: Caller): Promise<number[]> {
  const times: number[] = [];
  for (let i = 0; i < LATENCY_REQUESTS; i += 1) {
    const startedAt = performance.now();
    const response = await fetch(`${baseUrl}/api/v1/panel/get-application-settings?applicationId=${applicationId}`, { headers });
    await response.arrayBuffer();
    if (!response.ok) throw new Error(`get-application-settings: ${response.status}`);
    times.push(performance.now() - startedAt);
  }
  return times;
}
