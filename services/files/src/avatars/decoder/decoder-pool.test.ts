import { readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AVATAR_PIXELS_MAX } from '@latchkey/contract/avatar';
import { eventually } from '@latchkey/testkit/eventually';
import sharp from 'sharp';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { heavyPng, plainImage } from '../../testing/avatar/images.ts';
import { createDecoderPool, Decoder, DecoderLost, type DecoderPoolOptions, type ImageSource } from './decoder-pool.ts';

const READY = '{"ready":true}\n';

const encode = (bytes: Buffer): ImageSource => ({ base64: bytes.toString('base64') });
const response = (value: unknown) => `${JSON.stringify(value)}\n`;

let folder: string;
let image: ImageSource;
let webp: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'latchkey-decoder-'));
  image = encode(await plainImage(10, 10).png().toBuffer());
  webp = (await plainImage(10, 10).webp().toBuffer()).toString('base64');
  return () => rm(folder, { recursive: true });
});

/** Writes a program that stands for the decoder process. */
async function programOf(code: string): Promise<string> {
  const program = join(folder, `${readdirSync(folder).length}.mjs`);
  await writeFile(program, code);
  return program;
}

/** A decoder that responds to each image with this text. */
async function decoderSending(text: string, code = ''): Promise<Decoder> {
  const program = await programOf(
    `${code}; process.stdout.write(${JSON.stringify(READY)}); process.stdin.once('data', () => process.stdout.write(${JSON.stringify(text)}))`,
  );
  const decoder = new Decoder({ program });
  onTestFinished(() => decoder.end());
  return decoder;
}

const convert = (decoder: Decoder) => decoder.convert(image, AVATAR_PIXELS_MAX, 10_000);

describe('a response of a decoder that an image has taken over', () => {
  it.each([
    ['a WebP', { webp: () => webp }, 'resolves'],
    ['a reason to reject', { rejected: () => 'image_animated' }, 'image_animated'],
    ['another format', { webp: () => Buffer.from('<script>alert(1)</script>').toString('base64') }, 'DecoderLost'],
    ['a WebP with something behind it', { webp: () => `${webp}AAAA` }, 'DecoderLost'],
    ['a reason that does not exist', { rejected: () => '__proto__' }, 'DecoderLost'],
    ['something else', { other: () => true }, 'DecoderLost'],
  ])('%s is validated', async (_what, body, outcome) => {
    const value = Object.fromEntries(Object.entries(body).map(([name, make]) => [name, make()]));
    const converted = convert(await decoderSending(response(value)));
    if (outcome === 'resolves') expect((await converted).toString('base64')).toBe(webp);
    else await expect(converted).rejects.toMatchObject(outcome === 'DecoderLost' ? { name: outcome } : { reason: outcome });
  });

  it('is read up to 1 MiB', async () => {
    await expect(convert(await decoderSending('x'.repeat(1_100_000)))).rejects.toThrow(DecoderLost);
  });

  it('that no image asked for ends the process', async () => {
    const decoder = await decoderSending(response({ webp }) + response({ webp }));
    await convert(decoder);
    await eventually(() => expect(decoder.hasEnded).toBe(true));
  });
});

describe('a decoder', () => {
  it.runIf(process.platform === 'linux')('may use some 600 MiB of memory', async () => {
    const taking = (mib: number) =>
      decoderSending(response({ webp }), `globalThis.kept = Buffer.allocUnsafeSlow(${mib} * 1048576)`);
    expect((await convert(await taking(400))).length).toBeGreaterThan(0);
    await expect(convert(await taking(800))).rejects.toThrow();
  });

  it('that does not start, or can not read its file, blames no image', async () => {
    const missing = new Decoder({ program: join(folder, 'missing.mjs') });
    await expect(convert(missing)).rejects.toThrow(/^The decoder does not start: ended with code 1 .*missing/s);
    const decoder = new Decoder();
    onTestFinished(() => decoder.end());
    const unreadable = decoder.convert({ path: join(folder, 'missing') }, AVATAR_PIXELS_MAX, 10_000);
    await expect(unreadable).rejects.toThrow("can't be read");
  });

  it('that takes too long rejects the image and is killed', async () => {
    const decoder = await decoderSending('');
    const converted = decoder.convert(image, AVATAR_PIXELS_MAX, 50);
    await expect(converted).rejects.toMatchObject({ reason: 'image_undecodable' });
    expect(decoder.hasEnded).toBe(true);
  });
});

describe.runIf(process.platform === 'linux')('a pool of decoders', () => {
  const childPids = () =>
    readFileSync(`/proc/${process.pid}/task/${process.pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number);

  const startPool = (options: Partial<DecoderPoolOptions> = {}) => {
    const before = new Set(childPids());
    const lost: Error[] = [];
    const onLost = (err: Error) => void lost.push(err);
    const pool = createDecoderPool({ pixelsMax: AVATAR_PIXELS_MAX, timeoutMs: 10_000, onLost, ...options });
    onTestFinished(() => pool.close());
    return { pool, lost, pids: () => childPids().filter((pid) => !before.has(pid)) };
  };

  it('ends idle processes, and starts others', async () => {
    const { pool, pids } = startPool({ idleMs: 10 });
    await pool.convert(image);
    await eventually(() => expect(pids()).toEqual([]));
    await pool.convert(image);
  });

  it('retries an image whose process was killed', async () => {
    const { pool, pids, lost } = startPool();
    await pool.convert(image);
    const converted = pool.convert(image);
    process.kill(pids()[0] as number, 'SIGKILL');
    expect((await converted).length).toBeGreaterThan(0);
    expect(lost).toEqual([expect.any(DecoderLost)]);
  });

  it('rejects an image that ends two processes', async () => {
    const ready = `process.stdout.write(${JSON.stringify(READY)})`;
    const program = await programOf(`${ready}; process.stdin.once('data', () => process.abort())`);
    const { pool, lost } = startPool({ program });
    await expect(pool.convert(image)).rejects.toMatchObject({ reason: 'image_undecodable' });
    expect(lost).toHaveLength(2);
  });

  it('that is closed blames no image', async () => {
    const { pool, lost } = startPool();
    await pool.convert(image);
    const converted = pool.convert(image);
    pool.close();
    await expect(converted).rejects.toThrow(DecoderLost);
    expect(lost).toEqual([]);
  });

  it('starts processes without secrets, with low priority, that ignore the signals of the group', async () => {
    process.env.PLANTED_SECRET = 'planted';
    onTestFinished(() => void delete process.env.PLANTED_SECRET);
    const { pool, pids } = startPool();
    await pool.convert(image);
    const [pid = 0] = pids();
    expect(readFileSync(`/proc/${pid}/environ`, 'utf8')).not.toContain('planted');
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    expect(Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[16])).toBe(10);
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.kill(pid, signal);
    await pool.convert(image);
    expect(pids()).toEqual([pid]);
  });

  it('decodes the largest images within the memory limit, and returns their memory', async () => {
    const { pool, pids, lost } = startPool({ timeoutMs: 60_000 });
    const heavy = encode(await heavyPng(65_535, 244));
    for (let i = 0; i < 2; i += 1) expect((await sharp(await pool.convert(heavy)).metadata()).width).toBe(256);
    expect([pids().length, lost]).toEqual([1, []]);
    const peakKib = /VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pids()[0]}/status`, 'utf8'))?.[1];
    expect(Number(peakKib)).toBeLessThan(500 * 1_024);
  });
});
