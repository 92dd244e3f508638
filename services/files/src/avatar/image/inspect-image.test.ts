import { deflateSync } from 'node:zlib';
import sharp from 'sharp';
import { beforeAll, describe, expect, it } from 'vitest';
import {
  animatedWebp,
  hollowPng,
  jpegOfSize,
  noiseImage,
  plainImage,
  pngChunk,
  withPngChunk,
} from '../../testing/avatar/images.ts';
import { ImageRefused } from './image-fault.ts';
import { inspectImage } from './inspect-image.ts';

const PIXELS_MAX = 16_000_000;

/** What an image is taken for, or why it is refused. */
function verdictOn(bytes: Buffer): string {
  try {
    const { format, width, height } = inspectImage(bytes, { pixelsMax: PIXELS_MAX });
    return `${format} ${width}x${height}`;
  } catch (err) {
    if (err instanceof ImageRefused) return err.fault;
    throw err;
  }
}

let samples: Record<'png' | 'jpeg' | 'progressive' | 'webp' | 'lossless' | 'alpha', Buffer>;
beforeAll(async () => {
  samples = {
    png: await plainImage(300, 200).png().toBuffer(),
    jpeg: await noiseImage(300, 200).jpeg().toBuffer(),
    progressive: await noiseImage(300, 200).jpeg({ progressive: true }).toBuffer(),
    webp: await noiseImage(300, 200).webp().toBuffer(),
    lossless: await plainImage(300, 200).webp({ lossless: true }).toBuffer(),
    alpha: await plainImage(300, 200, 4)
      .withExif({ IFD0: { Copyright: 'x' } })
      .webp()
      .toBuffer(),
  };
});

describe('an image', () => {
  it('is told by its content, in each of its kinds', () => {
    const verdicts = Object.fromEntries(Object.entries(samples).map(([name, bytes]) => [name, verdictOn(bytes)]));
    expect(verdicts).toEqual({
      png: 'png 300x200',
      jpeg: 'jpeg 300x200',
      progressive: 'jpeg 300x200',
      webp: 'webp 300x200',
      lossless: 'webp 300x200',
      alpha: 'webp 300x200',
    });
  });

  it('has 16,000,000 pixels at most, by its header alone', () => {
    expect(verdictOn(hollowPng(4_000, 4_000))).toBe('png 4000x4000');
    for (const [width, height] of [
      [4_000, 4_001],
      [16_000_001, 1],
      [20_000, 20_000],
      [0xffffffff, 0xffffffff],
    ] as const) {
      expect(verdictOn(hollowPng(width, height)), `${width}x${height}`).toBe('too_many_pixels');
    }
    expect(verdictOn(hollowPng(0, 10))).toBe('damaged');
  });

  it('is 65,535 pixels wide and high at most, by its header alone: a row is decoded as a whole', () => {
    for (const [width, height] of [
      [65_535, 244],
      [244, 65_535],
    ] as const) {
      expect(verdictOn(hollowPng(width, height))).toBe(`png ${width}x${height}`);
    }
    for (const [width, height] of [
      [65_536, 1],
      [1, 65_536],
      [4_000_000, 4],
      [1, 16_000_000],
    ] as const) {
      expect(verdictOn(hollowPng(width, height)), `${width}x${height}`).toBe('side_too_long');
    }
  });

  it('has that many also as a JPEG and as a WebP', async () => {
    const [jpeg, webp] = [Buffer.from(samples.jpeg), Buffer.from(samples.webp)];
    const frameAt = jpeg.indexOf(Buffer.from('ffc0', 'hex'));
    jpeg.writeUInt16BE(20_000, frameAt + 5);
    jpeg.writeUInt16BE(20_000, frameAt + 7);
    expect(verdictOn(jpeg)).toBe('too_many_pixels');
    const sizeAt = webp.indexOf(Buffer.from('9d012a', 'hex')) + 3;
    webp.writeUInt16LE(16_383, sizeAt);
    webp.writeUInt16LE(16_383, sizeAt + 2);
    expect(verdictOn(webp)).toBe('too_many_pixels');
    const canvas = Buffer.from(samples.alpha);
    canvas.writeUIntLE(0xffffff, 24, 3);
    expect(verdictOn(canvas)).toBe('damaged');
  });

  it('is not animated', async () => {
    expect(verdictOn(await animatedWebp())).toBe('animated');
    const control = pngChunk('acTL', Buffer.from('0000000200000000', 'hex'));
    expect(verdictOn(withPngChunk(samples.png, control))).toBe('animated');
    const flagged = Buffer.from(samples.alpha);
    flagged[20] = (flagged[20] as number) | 0x02;
    expect(verdictOn(flagged)).toBe('animated');
  });
});

describe('what is no PNG, JPEG or WebP', () => {
  const svg = Buffer.from('<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>');
  const others: ReadonlyArray<readonly [string, () => Promise<Buffer> | Buffer]> = [
    ['nothing', () => Buffer.alloc(0)],
    ['one byte', () => Buffer.from([0x89])],
    ['text', () => Buffer.from('not an image')],
    ['SVG', () => svg],
    ['GIF', () => plainImage(9, 9).gif().toBuffer()],
    ['TIFF', () => plainImage(9, 9).tiff().toBuffer()],
    ['AVIF', () => plainImage(9, 9).avif().toBuffer()],
    ['HEIC', () => Buffer.from('0000001866747970686569630000000068656963', 'hex')],
    ['PDF', () => Buffer.from('%PDF-1.7\n%%EOF')],
    ['BMP', () => Buffer.concat([Buffer.from('BM'), Buffer.alloc(60)])],
    ['ICO', () => Buffer.from('00000100010010100000010020006804000016000000', 'hex')],
    ['WAV', () => Buffer.concat([Buffer.from('RIFF\0\0\0\0WAVEfmt '), Buffer.alloc(40)])],
  ];
  it.each(others)('is refused: %s', async (_name, make) => {
    expect(verdictOn(await make())).toBe('unsupported');
  });
});

describe('an image that is not whole', () => {
  it.each(['png', 'jpeg', 'progressive', 'webp', 'lossless', 'alpha'] as const)('is refused wherever it ends: %s', (name) => {
    const bytes = samples[name];
    for (let length = 12; length < bytes.length; length += Math.max(1, Math.floor(bytes.length / 200))) {
      expect(verdictOn(bytes.subarray(0, length)), `${length} of ${bytes.length}`).toBe('damaged');
    }
    expect(verdictOn(bytes.subarray(0, -1))).toBe('damaged');
  });
});

describe('an image that is something else as well', () => {
  const HTML = Buffer.from('<html><script>alert(1)</script></html>');
  // The end of a ZIP without a file in it, and one with a directory.
  const emptyZip = Buffer.concat([Buffer.from('504b0506', 'hex'), Buffer.alloc(18)]);
  const zip = () => {
    const directory = Buffer.concat([Buffer.from('504b0102', 'hex'), Buffer.alloc(42)]);
    const end = Buffer.concat([Buffer.from('504b0506', 'hex'), Buffer.alloc(18)]);
    end.writeUInt32LE(directory.length, 12);
    return Buffer.concat([directory, end]);
  };

  it.each(['png', 'jpeg', 'webp'] as const)('is refused where something follows it: %s', (name) => {
    for (const rest of [HTML, emptyZip, zip(), Buffer.from('\0\0PK'), Buffer.from([0xff, 0xd8, 0xff])]) {
      expect(verdictOn(Buffer.concat([samples[name], rest]))).toBe('damaged');
    }
  });

  it('is accepted where only zeros follow it, and a JPEG where whole smaller ones do, as cameras write', () => {
    for (const name of ['png', 'jpeg', 'webp'] as const) {
      expect(verdictOn(Buffer.concat([samples[name], Buffer.alloc(100)]))).toBe(`${name} 300x200`);
    }
    const several = [samples.jpeg, Buffer.alloc(3), samples.progressive];
    expect(verdictOn(Buffer.concat(several))).toBe('jpeg 300x200');
    expect(verdictOn(Buffer.concat([...several, HTML]))).toBe('damaged');
  });

  it('is refused where it hides in a comment: a ZIP, a PDF', () => {
    const hidden = (data: Buffer) => withPngChunk(samples.png, pngChunk('tEXt', Buffer.concat([Buffer.from('Comment\0'), data])));
    expect(verdictOn(hidden(HTML))).toBe('png 300x200');
    expect(verdictOn(hidden(zip()))).toBe('hides_file');
    expect(verdictOn(hidden(Buffer.from('%PDF-1.7')))).toBe('hides_file');
    // Four bytes that look like the end of a ZIP are in one of some ten thousand photographs.
    const byChance = Buffer.concat([Buffer.from('504b0506', 'hex'), Buffer.alloc(18, 0x55)]);
    expect(verdictOn(hidden(byChance))).toBe('png 300x200');
  });
});

describe('what only a program would write', () => {
  it('is refused: two sizes, none, scans without end', () => {
    const { jpeg, progressive } = samples;
    const frameAt = jpeg.indexOf(Buffer.from('ffc0', 'hex'));
    const frame = jpeg.subarray(frameAt, frameAt + 2 + jpeg.readUInt16BE(frameAt + 2));
    const twice = Buffer.concat([jpeg.subarray(0, frameAt), frame, jpeg.subarray(frameAt)]);
    expect(verdictOn(twice)).toBe('damaged');
    expect(verdictOn(Buffer.concat([jpeg.subarray(0, frameAt), jpeg.subarray(frameAt + frame.length)]))).toBe('damaged');
    const scanAt = progressive.lastIndexOf(Buffer.from('ffda', 'hex'));
    const scan = progressive.subarray(scanAt, -2);
    const scans = Buffer.concat([
      progressive.subarray(0, -2),
      ...Array.from({ length: 100 }, () => scan),
      progressive.subarray(-2),
    ]);
    expect(verdictOn(scans)).toBe('damaged');
  });

  it('is refused: a JPEG of a kind that no browser shows', () => {
    const arithmetic = Buffer.from(samples.jpeg);
    arithmetic[arithmetic.indexOf(Buffer.from('ffc0', 'hex')) + 1] = 0xc9;
    expect(verdictOn(arithmetic)).toBe('unsupported');
  });

  it('is refused: a second header, pixels without one, a profile of more than a MiB', () => {
    const { png } = samples;
    expect(verdictOn(withPngChunk(png, png.subarray(8, 33)))).toBe('damaged');
    expect(verdictOn(Buffer.concat([png.subarray(0, 8), png.subarray(33)]))).toBe('damaged');
    const profile = pngChunk('iCCP', Buffer.concat([Buffer.from('x\0\0'), Buffer.alloc(1024 * 1024)]));
    expect(verdictOn(withPngChunk(png, profile))).toBe('damaged');
  });

  it('is left out before anything decodes it: text, which may be compressed', async () => {
    const bomb = deflateSync(Buffer.alloc(64 * 1024 * 1024), { level: 9 });
    const text = pngChunk('zTXt', Buffer.concat([Buffer.from('Comment\0\0'), bomb]));
    const later = Buffer.concat([samples.png.subarray(0, -12), text, samples.png.subarray(-12)]);
    const { bytes } = inspectImage(withPngChunk(later, text), { pixelsMax: PIXELS_MAX });
    expect(bytes).toEqual(inspectImage(samples.png, { pixelsMax: PIXELS_MAX }).bytes);
    expect(await sharp(bytes).metadata()).toMatchObject({ width: 300, height: 200 });
  });

  it('takes no longer for it: a chunk every few bytes, fill bytes without end, a marker in every byte', async () => {
    const many = Buffer.concat(Array.from({ length: 200_000 }, () => pngChunk('teXt', Buffer.alloc(0))));
    const filled = Buffer.concat([samples.jpeg.subarray(0, 2), Buffer.alloc(3_000_000, 0xff), samples.jpeg.subarray(2)]);
    const escaped = Buffer.concat([
      samples.jpeg.subarray(0, -2),
      Buffer.alloc(3_000_000, Buffer.from('ff00', 'hex')),
      samples.jpeg.subarray(-2),
    ]);
    const startedAt = performance.now();
    expect([withPngChunk(samples.png, many), filled, escaped].map(verdictOn)).toEqual([
      'png 300x200',
      'jpeg 300x200',
      'jpeg 300x200',
    ]);
    expect(performance.now() - startedAt).toBeLessThan(2_000);
  });
});

it('may have any size in bytes here, which is bounded where it is received', async () => {
  const size = 3 * 1024 * 1024;
  const jpeg = await jpegOfSize(size);
  expect([jpeg.length, verdictOn(jpeg)]).toEqual([size, 'jpeg 64x64']);
});
