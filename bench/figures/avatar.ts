import sharp from 'sharp';
import { prepareCaller } from '../harness/account.ts';
import { type Servers, type Shape, startBaseline, startOurs } from '../harness/ours.ts';
import { compare, type Figure } from '../harness/report.ts';
import { request } from '../harness/request.ts';

const AVATARS_A_ROUND = 40;
/** Rounds that do not count: code is compiled after some hundred requests. */
const WARM_UP_ROUNDS = 5;

/**
 * F8: CPU for an avatar of 12 megapixels, over a bare handler that converts it with the same
 * library.
 */
export async function measureAvatarCpu(servers: Servers, shape: Shape, rounds: number): Promise<Figure> {
  const ours = await startOurs(servers, shape);
  const bare = await startBaseline(servers);
  const photo = await makePhoto();
  const { sessionHeaders } = await prepareCaller(ours.baseUrl);
  const post = (url: string, headers = {}) =>
    repeat(() => request(url, { headers: { ...headers, 'content-type': 'image/jpeg' }, body: new Uint8Array(photo) }));
  const send = () => post(`${ours.baseUrl}/api/v1/panel/upload-avatar`, sessionHeaders);
  const sendBare = () => post(`${bare.baseUrl}/avatar`);
  for (const each of [send, sendBare]) for (let round = 0; round < WARM_UP_ROUNDS; round += 1) await each();
  const msEach = (seconds: number) => (seconds / AVATARS_A_ROUND) * 1_000;
  const what = `avatar of 12 megapixels in ${(photo.length / 1024 / 1024).toFixed(1)} MiB, ${shape}, CPU`;
  return compare(
    { id: 'F8', what, ...(shape === 'standalone' && { goal: '≤ 1.4' }), rounds, unit: 'ms', digits: 1 },
    async () => msEach(await ours.cpuSeconds(send)),
    async () => msEach(await bare.cpuSeconds(sendBare)),
  );
}

/** A photograph as telephones make them: 12 megapixels in some 2.5 MiB. */
function makePhoto(): Promise<Buffer> {
  const noise = { type: 'gaussian' as const, mean: 128, sigma: 30 };
  const image = sharp({ create: { width: 4_000, height: 3_000, channels: 3, background: '#000', noise } });
  return image.jpeg({ quality: 60 }).toBuffer();
}

async function repeat(send: () => Promise<unknown>): Promise<void> {
  for (let i = 0; i < AVATARS_A_ROUND; i += 1) await send();
}
