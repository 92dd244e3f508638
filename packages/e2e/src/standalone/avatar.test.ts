import { createHash } from 'node:crypto';
import sharp from 'sharp';
import { beforeAll, describe, expect, inject, it } from 'vitest';
import type { Api } from '../client/api.ts';
import { AVATAR, getAvatar, noise, plain, UPLOAD_AVATAR, uploadAvatar } from '../client/avatars.ts';
import { type Owner, signUp } from '../client/caller.ts';
import { MIB, outcome } from '../client/files.ts';
import { sendRaw } from '../client/raw-request.ts';

const CACHED = 'private, max-age=86400, immutable';
const { port } = inject('latchkeyInstance');

let owner: Owner;
let png: Buffer;
beforeAll(async () => {
  owner = await signUp();
  png = await plain(60, 40).png().toBuffer();
});

const urlOf = async (session: Api) => (await session.get('/api/v1/auth/session')).data.account.avatarUrl;

describe('an avatar', () => {
  it('is absent at first, then the one of the last upload, whose URL the account has', async () => {
    const { session } = await signUp();
    expect([await urlOf(session), (await getAvatar(session)).code]).toEqual([null, 'not_found']);
    const first = await uploadAvatar(session, png);
    expect(first).toMatchObject({ status: 200, message: 'Avatar uploaded.' });
    expect(first.data).toEqual({ avatarUrl: expect.stringMatching(/^\/api\/v1\/panel\/avatar\?v=[0-9a-f-]{36}$/) });
    expect(await urlOf(session)).toBe(first.data.avatarUrl);
    const second = await uploadAvatar(session, png);
    expect(await urlOf(session)).toBe(second.data.avatarUrl);
    expect((await getAvatar(session, first.data.avatarUrl)).code).toBe('not_found');
    for (const url of [second.data.avatarUrl, AVATAR]) expect((await getAvatar(session, url)).status).toBe(200);
  });

  it('is removed, also where none exists', async () => {
    const { session } = await signUp();
    const { data } = await uploadAvatar(session, png);
    for (const _time of [1, 2]) {
      const removed = await session.delete(AVATAR);
      expect([outcome(removed), removed.message, await urlOf(session)]).toEqual(['200', 'Avatar removed.', null]);
      for (const url of [AVATAR, data.avatarUrl]) expect((await getAvatar(session, url)).code).toBe('not_found');
    }
    await uploadAvatar(session, png);
    expect((await getAvatar(session)).status).toBe(200);
  });

  it('is WebP of 256 x 256 at most, private, and not sent again to a client that has it', async () => {
    const { data } = await uploadAvatar(owner.session, await noise(800, 600).jpeg().toBuffer(), { 'content-type': 'image/jpeg' });
    const { status, headers, image } = await getAvatar(owner.session, data.avatarUrl);
    expect([status, await sharp(image).metadata()]).toEqual([
      200,
      expect.objectContaining({ format: 'webp', width: 256, height: 192 }),
    ]);
    const etag = `"${data.avatarUrl.split('=')[1]}"`;
    expect(Object.fromEntries(headers)).toMatchObject({
      'content-type': 'image/webp',
      'content-length': String(image.length),
      'cache-control': CACHED,
      'x-content-type-options': 'nosniff',
      'content-security-policy': "sandbox; default-src 'none'",
      etag,
      'x-request-id': expect.stringMatching(/^[0-9a-f-]{36}$/),
    });
    const withTags = (tags: string) => getAvatar(owner.session, data.avatarUrl, { 'if-none-match': tags });
    for (const tags of [etag, `W/${etag}`, `"x", ${etag}`, '*']) {
      const known = await withTags(tags);
      expect([known.status, known.image.length, known.headers.get('etag'), known.headers.get('cache-control')]).toEqual([
        304,
        0,
        etag,
        CACHED,
      ]);
    }
    for (const tags of ['"x"', etag.slice(1, -1), '']) expect((await withTags(tags)).status, tags).toBe(200);
    const head = await getAvatar(owner.session, data.avatarUrl, {}, 'HEAD');
    expect([head.status, head.image.length, head.headers.get('content-length')]).toEqual([200, 0, String(image.length)]);
  });

  it('is its owner’s alone', async () => {
    const { data } = await uploadAvatar(owner.session, png);
    const { session } = await signUp();
    await uploadAvatar(session, png);
    const unknown = await getAvatar(session, `${AVATAR}?v=00000000-0000-7000-8000-000000000000`);
    const stranger = await getAvatar(session, data.avatarUrl);
    expect([stranger.status, stranger.image.toString()]).toEqual([404, unknown.image.toString()]);
    for (const v of ['', '%00', '..%2F', 'a'.repeat(5_000)])
      expect((await getAvatar(session, `${AVATAR}?v=${v}`)).code, v).toBe('not_found');
  });
});

const head = (...more: string[]) => {
  const lines = Object.entries(owner.session.headers).map(([name, value]) => `${name}: ${value}`);
  return Buffer.from([`POST ${UPLOAD_AVATAR} HTTP/1.1`, 'Host: x', ...lines, ...more, '', ''].join('\r\n'));
};

describe('an upload', () => {
  it('that is repeated with its idempotency key is answered before its body', async () => {
    const digest = createHash('sha256').update(png).digest('base64');
    const headers = { 'idempotency-key': 'once', 'content-digest': `sha-256=:${digest}:` };
    const first = await uploadAvatar(owner.session, png, headers);
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
    const [answer] = await sendRaw(port, head('Expect: 100-continue', `Content-Length: ${png.length}`, ...lines));
    expect([answer?.status, answer?.text]).toEqual([200, first.text]);
  });

  it('is judged by its content, whatever type it says', async () => {
    const send = async (bytes: Buffer, headers: Record<string, string>) =>
      outcome(await uploadAvatar(owner.session, bytes, headers));
    const webp = await plain(30, 30).webp().toBuffer();
    for (const type of ['image/png', 'text/html', 'application/octet-stream; x=y'])
      expect(await send(webp, { 'content-type': type }), type).toBe('200');
    expect(await send(await plain(30, 30).gif().toBuffer(), { 'content-type': 'image/png' })).toBe('400 invalid_file');
    expect(await send(webp, { 'content-type': 'multipart/form-data; boundary=x' })).toBe('415 VALIDATION_ERROR');
    expect(await send(webp, { 'content-encoding': 'gzip' })).toBe('415 VALIDATION_ERROR');
  });

  it('of more than 3 MiB is rejected before or while it is read', async () => {
    const large = Buffer.alloc(3 * MIB + 1);
    const announced = head('Expect: 100-continue', `Content-Length: ${large.length}`);
    const size = Buffer.from(`${large.length.toString(16)}\r\n`);
    const chunked = Buffer.concat([head('Transfer-Encoding: chunked'), size, large, Buffer.from('\r\n0\r\n\r\n')]);
    for (const bytes of [announced, chunked]) {
      const [answer] = await sendRaw(port, bytes);
      expect([answer?.status, JSON.parse(answer?.text ?? '').code]).toEqual([413, 'limit_exceeded']);
    }
  });
});
