import { connect, type Socket } from 'node:net';
import { eventually } from '@latchkey/testkit/eventually';
import { beforeAll, expect, it, onTestFinished } from 'vitest';
import { plain, UPLOAD_AVATAR, uploadAvatar } from '../testing/avatars.ts';
import { type Owner, signUp } from '../testing/caller.ts';
import { outcome } from '../testing/files.ts';
import { type OwnInstance, startOwnInstance } from '../testing/own-instance.ts';

const HOME = { 'x-forwarded-for': '192.0.2.1' };

let instance: OwnInstance;
beforeAll(async () => {
  // A quarter of eight places is two.
  const env = { TRUSTED_PROXIES: 'loopback', AVATARS_AT_ONCE: '8', UPLOAD_ATTEMPTS_PER_MINUTE: '1000' };
  instance = await startOwnInstance({ env });
  return () => instance.stop();
});

/** Holds a place by an upload whose body does not come, and comes again while it is refused, until it is told to stop. */
function hold({ session }: Owner): () => void {
  const headers = { ...session.headers, ...HOME, host: 'x', 'content-length': '1000' };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  let socket: Socket;
  let isOver = false;
  const begin = () => {
    if (isOver) return;
    socket = connect(Number(new URL(instance.api.baseUrl).port), '127.0.0.1');
    socket.on('error', () => undefined).on('close', begin);
    socket.on('data', () => socket.destroy()).write([`POST ${UPLOAD_AVATAR} HTTP/1.1`, ...lines, '', 'x'].join('\r\n'));
  };
  begin();
  const stop = () => {
    isOver = true;
    socket.destroy();
  };
  onTestFinished(stop);
  return stop;
}

it('uploads of avatars from one address have a quarter of all places, whatever accounts they are of', async () => {
  const image = await plain(20, 20).png().toBuffer();
  const [first, second, other] = await Promise.all([signUp(instance.api), signUp(instance.api), signUp(instance.api)]);
  const stops = [hold(first), hold(second)];
  const fromHome = () => uploadAvatar(other.session, image, HOME);
  const message = 'Too many avatars are being uploaded from this address';
  await eventually(async () => expect(await fromHome()).toMatchObject({ status: 429, code: 'rate_limit_reached', message }));
  expect(outcome(await uploadAvatar(other.session, image, { 'x-forwarded-for': '192.0.2.2' }))).toBe('200');
  for (const stop of stops) stop();
  await eventually(async () => expect(outcome(await fromHome())).toBe('200'));
});
