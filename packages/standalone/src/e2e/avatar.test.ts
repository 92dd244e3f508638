import { hash } from 'node:crypto';
import { request } from 'node:http';
import { crc32, deflateSync } from 'node:zlib';
import { eventually } from '@latchkey/testkit/eventually';
import sharp from 'sharp';
import { beforeAll, describe, expect, inject, it } from 'vitest';
import type { Api } from '../testing/api.ts';
import { AVATAR, getAvatar, jpegOfSize, noise, plain, UPLOAD_AVATAR, uploadAvatar } from '../testing/avatars.ts';
import { createKey, type Owner, sharedApi, signUp } from '../testing/caller.ts';
import { MIB, outcome } from '../testing/files.ts';
import { findLogLines } from '../testing/instance.ts';
import { sendRaw } from '../testing/raw-request.ts';

const AVATAR_URL = /^\/api\/v1\/panel\/avatar\?v=[0-9a-f-]{36}$/;

let owner: Owner;
let png: Buffer;
beforeAll(async () => {
  owner = await signUp();
  png = await plain(60, 40).png().toBuffer();
});

const accountOf = async (session: Api) => (await session.get('/api/v1/auth/session')).data.account;

describe('an avatar', () => {
  it('is none at first', async () => {
    const { session } = await signUp();
    expect((await accountOf(session)).avatarUrl).toBeNull();
    expect(await getAvatar(session)).toMatchObject({ status: 404, code: 'not_found' });
  });

  it('is answered with its URL, which the account has from then on, and every upload has another', async () => {
    const { session } = await signUp();
    const first = await uploadAvatar(session, png);
    expect(first).toMatchObject({ status: 200, message: 'Avatar uploaded.' });
    expect(Object.keys(first.data)).toEqual(['avatarUrl']);
    expect(first.data.avatarUrl).toMatch(AVATAR_URL);
    expect((await accountOf(session)).avatarUrl).toBe(first.data.avatarUrl);
    const second = await uploadAvatar(session, png);
    expect(second.data.avatarUrl).not.toBe(first.data.avatarUrl);
    expect((await accountOf(session)).avatarUrl).toBe(second.data.avatarUrl);
    expect((await getAvatar(session, first.data.avatarUrl)).code).toBe('not_found');
    expect((await getAvatar(session, second.data.avatarUrl)).status).toBe(200);
    expect((await getAvatar(session)).status).toBe(200);
  });

  it('is WebP of 256 x 256 at most, with the headers that keep it private and unread for anything else', async () => {
    const { data } = await uploadAvatar(owner.session, await noise(800, 600).jpeg().toBuffer(), { 'content-type': 'image/jpeg' });
    const { status, headers, image } = await getAvatar(owner.session, data.avatarUrl);
    expect(status).toBe(200);
    expect(await sharp(image).metadata()).toMatchObject({ format: 'webp', width: 256, height: 192 });
    const id = data.avatarUrl.split('=')[1];
    expect(Object.fromEntries(headers)).toMatchObject({
      'content-type': 'image/webp',
      'content-length': String(image.length),
      'cache-control': 'private, max-age=86400, immutable',
      'x-content-type-options': 'nosniff',
      'content-security-policy': "sandbox; default-src 'none'",
      etag: `"${id}"`,
    });
    expect(headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/);
  });

  it('is not sent again to whoever has it', async () => {
    const { data } = await uploadAvatar(owner.session, png);
    const whole = await getAvatar(owner.session, data.avatarUrl);
    const etag = whole.headers.get('etag') as string;
    for (const tags of [etag, `W/${etag}`, `"x", ${etag}`, '*']) {
      const { status, headers, image } = await getAvatar(owner.session, data.avatarUrl, { 'if-none-match': tags });
      expect([status, image.length], tags).toEqual([304, 0]);
      expect([headers.get('etag'), headers.get('cache-control')]).toEqual([etag, 'private, max-age=86400, immutable']);
    }
    for (const tags of ['"x"', etag.slice(1, -1), '']) {
      expect((await getAvatar(owner.session, data.avatarUrl, { 'if-none-match': tags })).status, tags).toBe(200);
    }
    const head = await getAvatar(owner.session, data.avatarUrl, {}, 'HEAD');
    expect([head.status, head.image.length, head.headers.get('content-length')]).toEqual([200, 0, String(whole.image.length)]);
  });

  it('is its owner’s alone', async () => {
    const { data } = await uploadAvatar(owner.session, png);
    const { session } = await signUp();
    const stranger = await getAvatar(session, data.avatarUrl);
    const unknown = await getAvatar(session, `${AVATAR}?v=00000000-0000-7000-8000-000000000000`);
    expect([stranger.status, stranger.image.toString()]).toEqual([404, unknown.image.toString()]);
    await uploadAvatar(session, png);
    expect((await getAvatar(session, data.avatarUrl)).status).toBe(404);
    for (const v of ['', 'x', '%00', '..%2F', 'a'.repeat(5_000), '%F0%9F%98%80']) {
      expect(await getAvatar(session, `${AVATAR}?v=${v}`), v).toMatchObject({ status: 404, code: 'not_found' });
    }
  });

  it('is the same bytes in every shape of the service', async () => {
    // Of this picture, made once for all; the library may make others in its next release, and they change here then.
    const picture = Buffer.from(
      'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==',
      'base64',
    );
    const { data } = await uploadAvatar(owner.session, picture);
    const { image } = await getAvatar(owner.session, data.avatarUrl);
    const direct = await sharp(picture).webp({ quality: 82, alphaQuality: 90, effort: 2 }).toBuffer();
    expect(hash('sha256', image)).toBe(hash('sha256', direct));
  });
});

describe('an upload', () => {
  it('needs a session and its CSRF token; a key can’t do it, nor look', async () => {
    const key = await createKey(owner);
    expect(outcome(await uploadAvatar(key.api, png))).toBe('403 session_required');
    expect((await getAvatar(key.api)).code).toBe('session_required');
    expect(outcome(await uploadAvatar(sharedApi(), png))).toBe('401 unauth');
    expect((await getAvatar(sharedApi())).code).toBe('unauth');
    expect(outcome(await uploadAvatar(owner.session.with({ 'x-csrf-token': '' }), png))).toBe('403 csrf_invalid');
    expect(outcome(await uploadAvatar(owner.session, png, { origin: 'https://evil.example' }))).toBe('403 csrf_invalid');
  });

  it('is told by its content, whatever type it is said to have', async () => {
    const webp = await plain(30, 30).webp().toBuffer();
    for (const type of [
      'image/png',
      'image/svg+xml',
      'text/html',
      'application/json',
      'application/octet-stream; x=y',
      'video/mp4',
    ]) {
      expect(outcome(await uploadAvatar(owner.session, webp, { 'content-type': type })), type).toBe('200');
    }
    const gif = await plain(30, 30).gif().toBuffer();
    expect(outcome(await uploadAvatar(owner.session, gif, { 'content-type': 'image/png' }))).toBe('400 invalid_file');
    for (const headers of [
      { 'content-type': 'multipart/form-data; boundary=x' },
      { 'content-type': 'png' },
      { 'content-encoding': 'gzip' },
    ]) {
      expect(outcome(await uploadAvatar(owner.session, webp, headers))).toBe('415 VALIDATION_ERROR');
    }
  });

  it('may have 3 MiB, and not a byte more', async () => {
    expect(outcome(await uploadAvatar(owner.session, await jpegOfSize(3 * MIB)))).toBe('200');
    expect(outcome(await uploadAvatar(owner.session, await jpegOfSize(3 * MIB + 1)))).toBe('413 limit_exceeded');
  });

  it('is refused by its announced size before it is asked for', async () => {
    const { port } = new URL(owner.session.baseUrl);
    const answer = await new Promise<{ status: number; asked: boolean }>((resolve, reject) => {
      let asked = false;
      const req = request({
        port,
        method: 'POST',
        path: UPLOAD_AVATAR,
        headers: { ...owner.session.headers, expect: '100-continue', 'content-length': 3 * MIB + 1 },
      });
      req.on('continue', () => {
        asked = true;
      });
      req.on('response', (res) => {
        resolve({ status: res.statusCode ?? 0, asked });
        req.destroy();
      });
      req.on('error', reject).flushHeaders();
    });
    expect(answer).toEqual({ status: 413, asked: false });
  });

  it('is refused while it is read where its size is not announced', async () => {
    const [answer] = await sendRaw(Number(new URL(owner.session.baseUrl).port), chunked(await jpegOfSize(3 * MIB + 1)));
    expect([answer?.status, JSON.parse(answer?.text ?? '').code]).toEqual([413, 'limit_exceeded']);
  });

  it('may have 16,000,000 pixels, and not one more', async () => {
    expect(outcome(await uploadAvatar(owner.session, await plain(4_000, 4_000).png().toBuffer()))).toBe('200');
    expect(outcome(await uploadAvatar(owner.session, await plain(4_001, 4_000).png().toBuffer()))).toBe('400 invalid_file');
    const bomb = blackPng(20_000, 20_000);
    expect(bomb.length).toBeLessThan(MIB / 8);
    const startedAt = performance.now();
    expect(outcome(await uploadAvatar(owner.session, bomb))).toBe('400 invalid_file');
    expect(performance.now() - startedAt).toBeLessThan(3_000);
  });

  it('is refused where it is no whole still picture, and changes nothing', async () => {
    const { session } = await signUp();
    const { data } = await uploadAvatar(session, png);
    const frames = await Promise.all(
      ['#f00', '#00f'].map((colour) =>
        sharp({ create: { width: 9, height: 9, channels: 3, background: colour } })
          .png()
          .toBuffer(),
      ),
    );
    const bad = {
      empty: Buffer.alloc(0),
      text: Buffer.from('hello'),
      svg: Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>'),
      gif: await plain(9, 9).gif().toBuffer(),
      tiff: await plain(9, 9).tiff().toBuffer(),
      avif: await plain(9, 9).avif().toBuffer(),
      pdf: Buffer.from('%PDF-1.7\n%%EOF'),
      animated: await sharp(frames, { join: { animated: true } })
        .webp()
        .toBuffer(),
      truncated: png.subarray(0, -30),
      polyglot: Buffer.concat([await plain(9, 9).jpeg().toBuffer(), Buffer.from('<html><script>1</script>')]),
    };
    for (const [name, bytes] of Object.entries(bad)) {
      expect(outcome(await uploadAvatar(session, bytes)), name).toBe('400 invalid_file');
    }
    expect((await accountOf(session)).avatarUrl).toBe(data.avatarUrl);
    expect((await getAvatar(session, data.avatarUrl)).status).toBe(200);
  });

  it('that breaks off leaves what there was', async () => {
    const { session } = await signUp();
    const { data } = await uploadAvatar(session, png);
    const id = `avatar-cut-${session.headers.cookie?.slice(-8)}`;
    const headers = { ...session.headers, expect: '100-continue', 'content-length': png.length, 'x-request-id': id };
    const req = request(session.baseUrl + UPLOAD_AVATAR, { method: 'POST', headers });
    req.on('error', () => undefined).on('continue', () => req.write(png.subarray(0, 20), () => req.destroy()));
    req.flushHeaders();
    await eventually(async () => expect((await findLogLines(inject('latchkeyInstance').logDir, id)).length).toBeGreaterThan(0));
    expect((await accountOf(session)).avatarUrl).toBe(data.avatarUrl);
  });

  it('goes on beside seven others, and each account has its own', async () => {
    const owners = await Promise.all(Array.from({ length: 8 }, () => signUp()));
    const images = await Promise.all(
      owners.map((_, i) =>
        plain(20 + i, 20)
          .png()
          .toBuffer(),
      ),
    );
    const answers = await Promise.all(owners.map(({ session }, i) => uploadAvatar(session, images[i] as Buffer)));
    expect(answers.map(outcome)).toEqual(owners.map(() => '200'));
    for (const [i, { session }] of owners.entries()) {
      const { image } = await getAvatar(session, answers[i]?.data.avatarUrl);
      expect((await sharp(image).metadata()).width).toBe(20 + i);
    }
  });

  it('at once with others of its account leaves the one that the account names', async () => {
    const { session } = await signUp();
    const uploads = await Promise.all(Array.from({ length: 6 }, () => uploadAvatar(session, png)));
    const answers = uploads.filter(({ status }) => status === 200);
    expect(answers.length).toBeGreaterThan(1);
    // Beyond two of an account that are under way.
    const refused = uploads.filter(({ status }) => status !== 200);
    expect(refused.map(outcome)).toEqual(refused.map(() => '429 rate_limit_reached'));
    const { avatarUrl } = await accountOf(session);
    expect(answers.map(({ data }) => data.avatarUrl)).toContain(avatarUrl);
    const found = await Promise.all(answers.map(async ({ data }) => (await getAvatar(session, data.avatarUrl)).status));
    expect(found.filter((status) => status === 200)).toHaveLength(1);
    expect((await getAvatar(session, avatarUrl)).status).toBe(200);
  });
});

/** A request in chunks, without a length. */
function chunked(body: Buffer): Buffer {
  const lines = Object.entries(owner.session.headers).map(([name, value]) => `${name}: ${value}`);
  const head = [`POST ${UPLOAD_AVATAR} HTTP/1.1`, 'Host: x', 'Transfer-Encoding: chunked', ...lines].join('\r\n');
  const parts: Uint8Array[] = [Buffer.from(`${head}\r\n\r\n`)];
  for (let at = 0; at < body.length; at += MIB) {
    const part = body.subarray(at, at + MIB);
    parts.push(Buffer.from(`${part.length.toString(16)}\r\n`), part, Buffer.from('\r\n'));
  }
  return Buffer.concat([...parts, Buffer.from('0\r\n\r\n')]);
}

/** A whole black picture of any size, in a bit for each pixel. */
function blackPng(width: number, height: number): Buffer {
  const chunk = (type: string, data: Uint8Array) => {
    const body = Buffer.concat([Buffer.from(type), data]);
    const ends = [Buffer.alloc(4), Buffer.alloc(4)] as const;
    ends[0].writeUInt32BE(data.length);
    ends[1].writeUInt32BE(crc32(body));
    return Buffer.concat([ends[0], body, ends[1]]);
  };
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header[8] = 1;
  const pixels = deflateSync(Buffer.alloc(height * (1 + Math.ceil(width / 8))));
  const signature = Buffer.from('89504e470d0a1a0a', 'hex');
  return Buffer.concat([signature, chunk('IHDR', header), chunk('IDAT', pixels), chunk('IEND', Buffer.alloc(0))]);
}
