import { readFileSync } from 'node:fs';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { deflateSync } from 'node:zlib';
import { eventually } from '@latchkey/testkit/eventually';
import sharp from 'sharp';
import { beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { deepPng, hollowPng, noiseImage, plainImage, pngChunk, webpChunks, withPngChunk } from '../../testing/avatar/images.ts';
import { ImageRefused } from '../image/image-fault.ts';
import { DecoderLost } from './decoder.ts';
import { createDecoders, type DecoderOptions, type Decoders } from './decoders.ts';
import { FRAME, frameHead } from './frames.ts';

const BOUNDS = { atOnce: 2, pixelsMax: 16_000_000, timeoutMs: 15_000 };

let decoders: Decoders;
beforeAll(() => {
  decoders = createDecoders(BOUNDS);
  return () => decoders.close();
});

/** Why an image is refused, or `done`. */
async function faultOf(call: Promise<unknown>): Promise<string> {
  return call.then(
    () => 'done',
    (err: unknown) => {
      if (err instanceof ImageRefused) return err.fault;
      throw err;
    },
  );
}

/** The colour in the middle of an image, with its alpha. */
async function middleOf(image: Buffer): Promise<number[]> {
  const { data, info } = await sharp(image).ensureAlpha().raw().toBuffer({ resolveWithObject: true });
  const at = (Math.floor(info.height / 2) * info.width + Math.floor(info.width / 2)) * 4;
  return [...data.subarray(at, at + 4)];
}

/** Whether two colours look alike. */
const isNear = (a: readonly number[], b: readonly number[], by = 6) =>
  a.every((value, at) => Math.abs(value - (b[at] ?? 0)) <= by);

const RED = [200, 30, 60, 255];

async function sizeOf(image: Buffer): Promise<string> {
  const { format, width, height } = await sharp(image).metadata();
  return `${format} ${width}x${height}`;
}

describe('what is made of an image', () => {
  it.each([
    [4_000, 3_000, 'webp 256x192'],
    [300, 4_000, 'webp 19x256'],
    [256, 256, 'webp 256x256'],
    [257, 100, 'webp 256x100'],
    [100, 40, 'webp 100x40'],
    [1, 1, 'webp 1x1'],
    [16_000, 1_000, 'webp 256x16'],
    [4_000, 4_000, 'webp 256x256'],
    [8_000, 1, 'webp 256x1'],
  ])('fits in 256 x 256, keeps its shape and is never enlarged: %i x %i', async (width, height, expected) => {
    for (const image of [plainImage(width, height).png(), plainImage(width, height).jpeg()]) {
      expect(await sizeOf(await decoders.convert(await image.toBuffer()))).toBe(expected);
    }
  });

  it.each([1, 2, 3, 4, 5, 6, 7, 8])('is the right way up, whichever way the camera was held: %i', async (orientation) => {
    // Red above blue, twice as high as wide, once it is the right way up.
    const blue = await sharp({ create: { width: 40, height: 40, channels: 3, background: '#00f' } })
      .png()
      .toBuffer();
    const upright = sharp({ create: { width: 40, height: 80, channels: 3, background: '#f00' } }).composite([
      { input: blue, top: 40, left: 0 },
    ]);
    const undo = { 1: [0], 2: [0, 'flop'], 3: [180], 4: [180, 'flop'], 5: [270, 'flop'], 6: [270], 7: [90, 'flop'], 8: [90] }[
      orientation
    ] as [number, string?];
    let stored = sharp(await upright.png().toBuffer());
    if (undo[1]) stored = sharp(await stored.flop().png().toBuffer());
    const turned = sharp(await stored.rotate(undo[0]).png().toBuffer());
    for (const format of ['jpeg', 'webp', 'png'] as const) {
      const image = await turned.clone().withMetadata({ orientation }).toFormat(format).toBuffer();
      expect((await sharp(image).metadata()).orientation).toBe(orientation);
      const made = await decoders.convert(image);
      expect(await sizeOf(made), format).toBe('webp 40x80');
      const top = await sharp(made).extract({ left: 10, top: 5, width: 20, height: 20 }).toBuffer();
      const bottom = await sharp(made).extract({ left: 10, top: 55, width: 20, height: 20 }).toBuffer();
      expect(
        [isNear(await middleOf(top), [254, 0, 0, 255], 12), isNear(await middleOf(bottom), [0, 0, 254, 255], 12)],
        format,
      ).toEqual([true, true]);
    }
  });

  it('has no metadata, whatever there was', async () => {
    const secret = 'taken-at-home';
    for (const format of ['jpeg', 'png', 'webp'] as const) {
      const image = await noiseImage(300, 200)
        .withIccProfile('p3')
        .withExif({ IFD0: { Copyright: secret, ImageDescription: secret }, IFD3: { GPSLatitude: '51/1 30/1 0/1' } })
        .withXmp(`<x:xmpmeta xmlns:x="adobe:ns:meta/">${secret}</x:xmpmeta>`)
        .toFormat(format)
        .toBuffer();
      expect(image.includes(secret), format).toBe(true);
      const made = await decoders.convert(image);
      expect(webpChunks(made), format).toEqual(['VP8 ']);
      expect(made.includes(secret)).toBe(false);
      const { exif, icc, xmp, iptc, orientation } = await sharp(made).metadata();
      expect({ exif, icc, xmp, iptc, orientation }, format).toEqual({});
    }
    const text = pngChunk('tEXt', Buffer.from(`Comment\0${secret}`));
    const png = withPngChunk(await plainImage(40, 40, 4).png().toBuffer(), text);
    expect((await decoders.convert(png)).includes(secret)).toBe(false);
  });

  it('looks as it did: wide colours, grey, printers’ colours, 16 bits, a palette, transparency', async () => {
    const red = await plainImage(64, 64).png().toBuffer();
    const p3 = await sharp(red).withIccProfile('p3').png().toBuffer();
    // Its numbers are other ones for the same colour.
    expect(
      isNear(
        await sharp(p3, { ignoreIcc: true })
          .raw()
          .toBuffer()
          .then((raw) => [...raw.subarray(0, 3)]),
        RED,
      ),
    ).toBe(false);
    const images = {
      p3,
      'p3 jpeg': await sharp(red).withIccProfile('p3').jpeg({ quality: 95 }).toBuffer(),
      'p3 webp': await sharp(red).withIccProfile('p3').webp({ quality: 95 }).toBuffer(),
      '16 bits': await sharp(red).toColourspace('rgb16').png().toBuffer(),
      palette: await sharp(red).png({ palette: true }).toBuffer(),
      interlaced: await sharp(red).png({ progressive: true }).toBuffer(),
    };
    for (const [name, image] of Object.entries(images)) {
      const colour = await middleOf(await decoders.convert(image));
      expect(isNear(colour, RED), `${name}: ${colour}`).toBe(true);
    }
    const cmyk = await sharp(red).toColourspace('cmyk').jpeg({ quality: 95 }).toBuffer();
    expect((await sharp(cmyk).metadata()).space).toBe('cmyk');
    // Printers' inks reach less far.
    const printed = await middleOf(await decoders.convert(cmyk));
    expect(isNear(printed, RED, 25), `cmyk: ${printed}`).toBe(true);
    const grey = await sharp(red).greyscale().jpeg().toBuffer();
    const [r, g, b] = await middleOf(await decoders.convert(grey));
    expect([r, g]).toEqual([g, b]);
    expect(isNear([r as number], [(await sharp(grey).raw().toBuffer())[0] as number])).toBe(true);
    const clear = await sharp({
      create: { width: 64, height: 64, channels: 4, background: { r: 200, g: 30, b: 60, alpha: 0.5 } },
    });
    for (const image of [
      await clear.clone().png().toBuffer(),
      await clear.clone().png({ palette: true }).toBuffer(),
      await clear.clone().webp().toBuffer(),
    ]) {
      const colour = await middleOf(await decoders.convert(image));
      expect(isNear(colour, [200, 30, 60, 128]), String(colour)).toBe(true);
    }
  });
});

/** What takes most memory of all that may be sent. */
async function heavyPng(width: number, height: number): Promise<Buffer> {
  const { icc } = await sharp(await plainImage(2, 2).withIccProfile('p3').png().toBuffer()).metadata();
  const profile = Buffer.concat([Buffer.from('p3\0\0'), deflateSync(icc as Buffer)]);
  return withPngChunk(deepPng(width, height), pngChunk('iCCP', profile));
}

describe('what takes most to decode of all that may be sent', () => {
  it.each([
    [65_535, 244, '256x1'],
    [244, 65_535, '1x256'],
    [4_000, 4_000, '256x256'],
  ])('fits in its memory: 16 bits to a channel, with a profile, %i x %i', async (width, height, expected) => {
    const made = await decoders.convert(await heavyPng(width, height));
    expect(await sizeOf(made)).toBe(`webp ${expected}`);
  });
});

describe('what can’t be decoded', () => {
  it('is refused: pixels that are not what the header says, a check sum that is wrong, a hole', async () => {
    expect(await faultOf(decoders.convert(hollowPng(4_000, 4_000)))).toBe('damaged');
    const png = await noiseImage(100, 100).png().toBuffer();
    const flipped = Buffer.from(png);
    flipped[2_000] = (flipped[2_000] as number) ^ 1;
    expect(await faultOf(decoders.convert(flipped))).toBe('damaged');
    const jpeg = await noiseImage(400, 400).jpeg().toBuffer();
    const holed = Buffer.from(jpeg);
    holed.fill(0, jpeg.length >> 1, jpeg.length - 2);
    expect(await faultOf(decoders.convert(holed))).toBe('damaged');
    const cut = Buffer.concat([jpeg.subarray(0, jpeg.length >> 1), jpeg.subarray(-2)]);
    expect(await faultOf(decoders.convert(cut))).toBe('damaged');
    expect(await faultOf(decoders.convert(Buffer.from('GIF89a')))).toBe('unsupported');
  });

  it('is refused before it is decoded where it has too many pixels', async () => {
    const startedAt = performance.now();
    expect(await faultOf(decoders.convert(hollowPng(20_000, 20_000)))).toBe('too_many_pixels');
    expect(performance.now() - startedAt).toBeLessThan(2_000);
    expect(await faultOf(decoders.convert(await plainImage(4_001, 4_000).jpeg().toBuffer()))).toBe('too_many_pixels');
  });

  it('is refused once it took too long, and the next image is decoded all the same', async () => {
    const hasty = createDecoders({ ...BOUNDS, timeoutMs: 1 });
    onTestFinished(() => hasty.close());
    const image = await noiseImage(3_000, 3_000).png().toBuffer();
    expect(await faultOf(hasty.convert(image))).toBe('undecodable');
    expect(await sizeOf(await decoders.convert(image))).toBe('webp 256x256');
  });
});

/** The processes that this one has started to decode, by their pids. */
function decoderPids(): number[] {
  const children = readFileSync(`/proc/${process.pid}/task/${process.pid}/children`, 'utf8')
    .trim()
    .split(' ')
    .filter(Boolean)
    .map(Number);
  return children.filter((pid) => readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('decoder-process'));
}

describe.runIf(process.platform === 'linux')('the processes that decode', () => {
  const startOwn = (options: Partial<DecoderOptions> = {}) => {
    const before = new Set(decoderPids());
    const own = createDecoders({ ...BOUNDS, ...options });
    onTestFinished(() => own.close());
    return { own, pids: () => decoderPids().filter((pid) => !before.has(pid)) };
  };

  it('are no more than may be, for any number of images', async () => {
    const { own, pids } = startOwn();
    const image = await noiseImage(1_000, 1_000).jpeg().toBuffer();
    let most = 0;
    const watch = setInterval(() => {
      most = Math.max(most, pids().length);
    }, 5);
    await Promise.all(Array.from({ length: 16 }, () => own.convert(image))).finally(() => clearInterval(watch));
    expect(most).toBe(2);
  });

  it('end when they have had nothing to do for a while, and start again', async () => {
    const { own, pids } = startOwn({ idleMs: 100 });
    const image = await plainImage(10, 10).png().toBuffer();
    await own.convert(image);
    await eventually(() => expect(pids()).toEqual([]));
    expect(await sizeOf(await own.convert(image))).toBe('webp 10x10');
  });

  it('give back what an image took: after many that take much there is room for the next', async () => {
    const { own, pids } = startOwn({ atOnce: 1 });
    const image = await heavyPng(65_535, 244);
    const used = new Set<number | undefined>();
    for (let i = 0; i < 8; i += 1) {
      expect(await faultOf(own.convert(image))).toBe('done');
      used.add(pids()[0]);
    }
    expect(used.size).toBe(1);
    expect(Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pids()[0]}/status`, 'utf8'))?.[1])).toBeLessThan(500 * 1_024);
  });

  it('are given the image once more when one is killed', async () => {
    const lost: Error[] = [];
    const { own, pids } = startOwn({ atOnce: 1, onLost: (err) => lost.push(err) });
    await own.convert(await plainImage(10, 10).png().toBuffer());
    const image = own.convert(await noiseImage(300, 200).png().toBuffer());
    process.kill(pids()[0] as number, 'SIGKILL');
    expect(await sizeOf(await image)).toBe('webp 256x171');
    expect(lost).toEqual([expect.any(DecoderLost)]);
  });

  it('are not given it a third time: what ends two is refused', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'latchkey-decoders-'));
    onTestFinished(() => rm(folder, { recursive: true }));
    const program = join(folder, 'dying.mjs');
    const ready = `Buffer.from('${frameHead(FRAME.ready, 0).toString('hex')}', 'hex')`;
    await writeFile(program, `process.stdout.write(${ready}); process.stdin.once('data', () => process.abort())`);
    const lost: Error[] = [];
    const { own } = startOwn({ program, onLost: (err) => lost.push(err) });
    expect(await faultOf(own.convert(await plainImage(10, 10).png().toBuffer()))).toBe('undecodable');
    expect(lost).toHaveLength(2);
  });

  it('hand the image back when all are ended, as no image is to blame for that', async () => {
    const lost: Error[] = [];
    const { own } = startOwn({ onLost: (err) => lost.push(err) });
    await own.convert(await plainImage(10, 10).png().toBuffer());
    const image = own.convert(await noiseImage(300, 200).png().toBuffer());
    own.close();
    await expect(image).rejects.toThrow(DecoderLost);
    expect(lost).toEqual([]);
  });

  it('know nothing of ours, and make way for everything else', async () => {
    const { own, pids } = startOwn({ atOnce: 1 });
    process.env.PLANTED_SECRET = 'planted';
    onTestFinished(() => void delete process.env.PLANTED_SECRET);
    await own.convert(await plainImage(10, 10).png().toBuffer());
    const [pid] = pids();
    expect(await readFile(`/proc/${pid}/environ`, 'utf8')).not.toContain('planted');
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
    const nice = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[16]);
    expect(nice).toBe(10);
  });

  it('leave what they compiled to those that come later', async () => {
    const cache = await mkdtemp(join(tmpdir(), 'latchkey-compiled-'));
    vi.stubEnv('NODE_COMPILE_CACHE', cache);
    onTestFinished(() => {
      vi.unstubAllEnvs();
      return rm(cache, { recursive: true });
    });
    const { own } = startOwn({ atOnce: 1 });
    const image = await plainImage(10, 10).png().toBuffer();
    await own.convert(image);
    const compiled = await readdir(cache, { recursive: true });
    expect(compiled.length).toBeGreaterThan(1);
    const { own: later } = startOwn({ atOnce: 1 });
    await later.convert(image);
    expect(await readdir(cache, { recursive: true })).toEqual(compiled);
  });

  it('do not hear the signals that end the service', async () => {
    const { own, pids } = startOwn({ atOnce: 1 });
    const image = await plainImage(10, 10).png().toBuffer();
    await own.convert(image);
    const [pid] = pids();
    process.kill(pid as number, 'SIGINT');
    process.kill(pid as number, 'SIGTERM');
    await own.convert(image);
    expect(pids()).toEqual([pid]);
  });
});
