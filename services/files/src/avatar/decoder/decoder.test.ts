import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eventually } from '@latchkey/testkit/eventually';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { plainImage } from '../../testing/avatar/images.ts';
import { ImageRefused } from '../image/image-fault.ts';
import { Decoder, DecoderLost } from './decoder.ts';
import { FRAME, frameHead } from './frames.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'latchkey-decoder-'));
  return () => rm(folder, { recursive: true });
});

let programs = 0;

/** A decoder that an image has taken over: it answers each piece that it is sent with these bytes. */
async function takenOver(...answer: Buffer[]): Promise<Decoder> {
  programs += 1;
  const program = join(folder, `${programs}.mjs`);
  const text = Buffer.concat(answer).toString('base64');
  await writeFile(program, `process.stdin.once('data', () => process.stdout.write(Buffer.from('${text}', 'base64')))`);
  const decoder = new Decoder(program);
  onTestFinished(() => decoder.end());
  return decoder;
}

const framed = (kind: number, bytes: Buffer) => [frameHead(kind, bytes.length), bytes];
const convert = (decoder: Decoder) => decoder.convert(Buffer.from('an image'), 100, 10_000);
const webp = (width: number, height: number) => plainImage(width, height).webp().toBuffer();

/** What is changed in a WebP, whose length in the header is made to fit. */
async function altered(change: (bytes: Buffer) => Buffer): Promise<Buffer> {
  const bytes = change(await webp(20, 20));
  bytes.writeUInt32LE(bytes.length - 8, 4);
  return bytes;
}

async function expectDistrust(decoder: Decoder): Promise<void> {
  await expect(convert(decoder)).rejects.toThrow(DecoderLost);
  expect(decoder.isUsable).toBe(false);
}

describe('of what a decoder answers', () => {
  it('a still WebP of 256 x 256 is taken, and a refusal that there is', async () => {
    const image = await webp(256, 256);
    expect(await convert(await takenOver(...framed(FRAME.converted, image)))).toEqual(image);
    const refused = convert(await takenOver(...framed(FRAME.refused, Buffer.from('animated'))));
    await expect(refused).rejects.toEqual(new ImageRefused('animated'));
  });

  it.each([
    ['is larger', () => webp(257, 10)],
    ['is higher', () => webp(10, 257)],
    ['is another format', () => plainImage(10, 10).png().toBuffer()],
    ['is a page', async () => Buffer.from('<script>alert(1)</script>')],
    ['is empty', async () => Buffer.alloc(0)],
    ['is cut off', async () => (await webp(20, 20)).subarray(0, -4)],
    ['has something behind it', async () => Buffer.concat([await webp(20, 20), Buffer.alloc(2)])],
    ['has a header alone', () => altered((bytes) => bytes.subarray(0, 12))],
    ['is an animation', () => altered((bytes) => Buffer.concat([bytes, Buffer.from('ANIM\0\0\0\0')]))],
  ])('no image is taken that %s, and the process is ended', async (_what, make) => {
    await expectDistrust(await takenOver(...framed(FRAME.converted, await make())));
  });

  it.each([
    ['a refusal that there is not', framed(FRAME.refused, Buffer.from('__proto__'))],
    ['a frame of another kind', framed(FRAME.image, Buffer.from('damaged'))],
    ['a frame of more than 1 MiB, for which no memory is set aside', [frameHead(FRAME.converted, 1_048_577)]],
    ['a frame of 4 GiB', [frameHead(FRAME.refused, 0xffff_ffff)]],
  ])('%s is not believed, and the process is ended', async (_what, answer) => {
    await expectDistrust(await takenOver(...answer));
  });

  it('what nobody asked for ends the process, so that it is no answer to the next image', async () => {
    const image = framed(FRAME.converted, await webp(20, 20));
    const decoder = await takenOver(...image, ...image);
    await convert(decoder);
    await eventually(() => expect(decoder.isUsable).toBe(false));
  });

  it('that it has started is no answer, and told twice it is not believed', async () => {
    const ready = framed(FRAME.ready, Buffer.alloc(0));
    const image = await webp(20, 20);
    expect(await convert(await takenOver(...ready, ...framed(FRAME.converted, image)))).toEqual(image);
    await expectDistrust(await takenOver(...ready, ...ready));
  });

  it('words are told in part', async () => {
    const decoder = await takenOver(...framed(FRAME.unreadable, Buffer.alloc(1_000_000, 'x')));
    const err = await convert(decoder).catch((reason: Error) => reason);
    expect((err as Error).message.length).toBeLessThan(2_100);
  });
});

describe('a decoder', () => {
  /** One that does something else once it has started. */
  async function doing(code: string): Promise<Decoder> {
    const [ready, answer] = [framed(FRAME.ready, Buffer.alloc(0)), framed(FRAME.converted, await webp(20, 20))];
    const [started, done] = [ready, answer].map((frame) => `Buffer.from('${Buffer.concat(frame).toString('base64')}', 'base64')`);
    programs += 1;
    const program = join(folder, `${programs}.mjs`);
    await writeFile(program, `process.stdout.write(${started}); const answer = () => process.stdout.write(${done}); ${code}`);
    const decoder = new Decoder(program);
    onTestFinished(() => decoder.end());
    return decoder;
  }

  it.runIf(process.platform === 'linux')('may set aside some 600 MiB, and ends where it needs more', async () => {
    const taking = (mib: number) =>
      doing(`const kept = Buffer.allocUnsafeSlow(${mib} * 1048576); process.stdin.once('data', answer)`);
    expect((await convert(await taking(400))).length).toBeGreaterThan(0);
    await expect(convert(await taking(800))).rejects.toThrow(DecoderLost);
  });

  it('that ends before it has started is no fault of the image', async () => {
    const program = join(folder, 'not-there.mjs');
    const refusal = await convert(new Decoder(program)).catch((err: unknown) => err);
    expect(refusal).toBeInstanceOf(Error);
    expect(refusal).not.toBeInstanceOf(DecoderLost);
    expect((refusal as Error).message).toMatch(/^No decoder starts: ended with code 1 .*not-there/s);
  });
});
