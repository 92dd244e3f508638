import sharp from 'sharp';
import { beforeAll, expect, inject, it } from 'vitest';
import { AVATAR, getAvatar, noise, plain, UPLOAD_AVATAR, uploadAvatar } from '../client/avatars.ts';
import { type Owner, signUp } from '../client/caller.ts';
import { MIB, outcome } from '../client/files.ts';
import { sendRaw } from '../client/raw-request.ts';

const CACHED = 'private, max-age=86400, immutable';
const { port } = inject('latchkeyInstance');

let owner: Owner;
beforeAll(async () => {
  owner = await signUp();
});

it('an avatar is absent at first, then that of the last upload, for its owner alone, until it is removed', async () => {
  const png = await plain(60, 40).png().toBuffer();
  const [{ session }, stranger] = [await signUp(), await signUp()];
  const urlOf = async () => (await session.get('/api/v1/auth/session')).data.account.avatarUrl;
  expect([await urlOf(), (await getAvatar(session)).code]).toEqual([null, 'not_found']);
  const [first, second] = [await uploadAvatar(session, png), await uploadAvatar(session, png)];
  expect(first).toMatchObject({ status: 200, message: 'Avatar uploaded.' });
  expect(first.data).toEqual({ avatarUrl: expect.stringMatching(/^\/api\/v1\/panel\/avatar\?v=[0-9a-f-]{36}$/) });
  expect(await urlOf()).toBe(second.data.avatarUrl);
  for (const url of [second.data.avatarUrl, AVATAR]) expect((await getAvatar(session, url)).status).toBe(200);
  await uploadAvatar(stranger.session, png);
  const unknown = await getAvatar(session, `${AVATAR}?v=00000000-0000-7000-8000-000000000000`);
  for (const foreign of [
    await getAvatar(session, first.data.avatarUrl),
    await getAvatar(stranger.session, second.data.avatarUrl),
  ])
    expect([foreign.status, foreign.image.toString()]).toEqual([404, unknown.image.toString()]);
  for (const v of ['', '%00', '..%2F', 'a'.repeat(5_000)])
    expect((await getAvatar(session, `${AVATAR}?v=${v}`)).code, v).toBe('not_found');
  for (const _time of [1, 2]) {
    const removed = await session.delete(AVATAR);
    expect([outcome(removed), removed.message, await urlOf()]).toEqual(['200', 'Avatar removed.', null]);
    for (const url of [AVATAR, second.data.avatarUrl]) expect((await getAvatar(session, url)).code).toBe('not_found');
  }
});

it('an avatar is WebP of 256 x 256 at most, private, and not sent again to a client that has it', async () => {
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

it('an upload is judged by its content, whatever type it has, and rejected over 3 MiB before or while it is read', async () => {
  const send = async (bytes: Buffer, headers: Record<string, string>) =>
    outcome(await uploadAvatar(owner.session, bytes, headers));
  const webp = await plain(30, 30).webp().toBuffer();
  for (const type of ['image/png', 'text/html']) expect(await send(webp, { 'content-type': type }), type).toBe('200');
  expect(await send(await plain(30, 30).gif().toBuffer(), { 'content-type': 'image/png' })).toBe('400 invalid_file');
  expect(await send(webp, { 'content-type': 'multipart/form-data; boundary=x' })).toBe('415 VALIDATION_ERROR');
  expect(await send(webp, { 'content-encoding': 'gzip' })).toBe('415 VALIDATION_ERROR');
  const credentials = Object.entries(owner.session.headers).map(([name, value]) => `${name}: ${value}`);
  const head = (...more: string[]) =>
    Buffer.from([`POST ${UPLOAD_AVATAR} HTTP/1.1`, 'Host: x', ...credentials, ...more, '', ''].join('\r\n'));
  const large = Buffer.alloc(3 * MIB + 1);
  const announced = head('Expect: 100-continue', `Content-Length: ${large.length}`);
  const size = Buffer.from(`${large.length.toString(16)}\r\n`);
  const chunked = Buffer.concat([head('Transfer-Encoding: chunked'), size, large, Buffer.from('\r\n0\r\n\r\n')]);
  for (const bytes of [announced, chunked]) {
    const [answer] = await sendRaw(port, bytes);
    expect([answer?.status, JSON.parse(answer?.text ?? '').code]).toEqual([413, 'limit_exceeded']);
  }
});
