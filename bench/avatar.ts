import sharp from 'sharp';
import { type Caller, prepareCaller } from './account.ts';
import { type Servers, type Shape, startOurs } from './ours.ts';
import { cpuSecondsOf } from './process-tree.ts';
import { type Figure, median, range } from './report.ts';

/** Images that one side takes in a round: the system counts time in hundredths of a second. */
const AVATARS_A_ROUND = 40;
const WARM_UPS = 3;
const UPLOADS_AT_ONCE = 16;
const LATENCY_ROUNDS = 5;
const LATENCY_REQUESTS = 400;

/** A photograph as telephones make them: 12 megapixels in some 2.5 MiB. */
function makePhoto(): Promise<Buffer> {
  const noise = { type: 'gaussian' as const, mean: 128, sigma: 30 };
  return sharp({ create: { width: 4_000, height: 3_000, channels: 3, background: '#000', noise } })
    .jpeg({ quality: 60 })
    .toBuffer();
}

/** What the service does to an image, by itself. */
function convertBare(photo: Buffer): Promise<Buffer> {
  return sharp(photo, { failOn: 'warning', sequentialRead: true })
    .autoOrient()
    .resize({ width: 256, height: 256, fit: 'inside', withoutEnlargement: true })
    .webp({ quality: 82, alphaQuality: 90, effort: 4 })
    .toBuffer();
}

/** F8: CPU of our processes for an avatar of 12 megapixels, over that of the library doing the same to it, in turns. */
export async function measureAvatarCpu(servers: Servers, shape: Shape, rounds: number): Promise<Figure> {
  sharp.cache(false);
  sharp.concurrency(1);
  const ours = await startOurs(servers, shape);
  try {
    const photo = await makePhoto();
    const caller = await prepareCaller(ours.baseUrl);
    const uploadSome = async (count: number) => {
      for (let i = 0; i < count; i += 1) await uploadAvatar(ours.baseUrl, caller, photo);
    };
    const convertSome = async (count: number) => {
      for (let i = 0; i < count; i += 1) await convertBare(photo);
    };
    await uploadSome(WARM_UPS);
    await convertSome(WARM_UPS);
    const found = { ours: [] as number[], baseline: [] as number[], ratio: [] as number[] };
    for (let round = 0; round < rounds; round += 1) {
      const before = cpuSecondsOf(ours.measured());
      await uploadSome(AVATARS_A_ROUND);
      const a = ((cpuSecondsOf(ours.measured()) - before) / AVATARS_A_ROUND) * 1_000;
      const start = process.cpuUsage();
      await convertSome(AVATARS_A_ROUND);
      const { user, system } = process.cpuUsage(start);
      const b = (user + system) / AVATARS_A_ROUND / 1_000;
      found.ours.push(a);
      found.baseline.push(b);
      found.ratio.push(a / b);
    }
    return {
      id: 'F8',
      what: `avatar of 12 megapixels in ${(photo.length / 1024 / 1024).toFixed(1)} MiB, ${shape}, CPU`,
      value: `${median(found.ours).toFixed(1)} ms`,
      baseline: `${median(found.baseline).toFixed(1)} ms`,
      result: `${median(found.ratio).toFixed(2)} (${range(found.ratio, 2)})`,
      goal: '≤ 1.2',
    };
  } finally {
    await ours.child.stop();
  }
}

/** The median of another route while 16 avatars are uploaded at once, again and again, over the median while none is. */
export async function measureAvatarLatency(servers: Servers, shape: Shape): Promise<Figure> {
  const ours = await startOurs(servers, shape);
  try {
    const photo = await makePhoto();
    const callers = await Promise.all(Array.from({ length: UPLOADS_AT_ONCE }, () => prepareCaller(ours.baseUrl)));
    const [reader] = callers as [Caller];
    await readSome(ours.baseUrl, reader);
    const found = { busy: [] as number[], quiet: [] as number[], ratio: [] as number[] };
    for (let round = 0; round < LATENCY_ROUNDS; round += 1) {
      const quiet = median(await readSome(ours.baseUrl, reader));
      let going = true;
      const uploads = callers.map(async (caller) => {
        while (going) await uploadAvatar(ours.baseUrl, caller, photo);
      });
      const busy = median(await readSome(ours.baseUrl, reader));
      going = false;
      await Promise.all(uploads);
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

async function uploadAvatar(baseUrl: string, { sessionHeaders }: Caller, photo: Buffer): Promise<void> {
  const response = await fetch(`${baseUrl}/api/v1/panel/upload-avatar`, {
    method: 'POST',
    headers: { ...sessionHeaders, 'content-type': 'image/jpeg' },
    body: new Uint8Array(photo),
  });
  if (!response.ok) throw new Error(`upload-avatar: ${response.status} ${await response.text()}`);
  await response.arrayBuffer();
}
