import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { crc32, deflateSync } from 'node:zlib';
import { eventually } from '@latchkey/testkit/eventually';

const GATEWAY = 'http://127.0.0.1:8080/api/v1';
const REALTIME = 'ws://127.0.0.1:8081/api/v1/realtime';
const FILE_BYTES = 12 * 2 ** 20;

/** A first session against what runs: an account, an application, a file of several parts, and a live event. Throws for what is not as it should be. */
export async function runSession() {
  const headers: Record<string, string> = {};
  const send = async (method: string, path: string, body?: unknown) => {
    const bytes = body instanceof Uint8Array;
    const type = body === undefined ? {} : { 'content-type': bytes ? 'application/octet-stream' : 'application/json' };
    const init = body === undefined ? {} : { body: bytes ? (body as Uint8Array<ArrayBuffer>) : JSON.stringify(body) };
    const response = await fetch(`${GATEWAY}${path}`, { method, headers: { ...type, ...headers }, ...init });
    // biome-ignore lint/suspicious/noExplicitAny: answers have many shapes.
    const answer: any = await response.json();
    assert.equal(response.status, 200, `${method} ${path}: ${JSON.stringify(answer)}`);
    const cookie = response.headers.getSetCookie()[0]?.split(';')[0];
    if (cookie) headers.cookie = cookie;
    return answer.data;
  };
  const suffix = randomBytes(4).toString('hex');
  const account = { username: `ada-${suffix}`, email: `ada-${suffix}@example.com`, password: 'analytical engine' };
  headers['x-csrf-token'] = (await send('POST', '/auth/sign-up', account)).csrfToken;
  await send('POST', '/panel/create-application', { name: 'Difference Engine' });
  const [application] = await send('GET', '/panel/get-applications');
  const file = randomBytes(FILE_BYTES);
  await send('POST', `/panel/upload-file?applicationId=${application.id}&fileName=release.bin`, file);
  const [row] = await send('GET', `/panel/get-files-table?applicationId=${application.id}&currentPage=1`);
  assert.equal(row.checksum, createHash('sha256').update(file).digest('hex'));
  await hearPause(application.applicationApiKeys.socketKey, () =>
    send('PATCH', `/panel/update-application-settings?applicationId=${application.id}`, { field: 'status', value: 'paused' }),
  );
  /** Sets an avatar, and reads it. */
  const setAvatar = async () => {
    const { avatarUrl } = await send('POST', '/panel/upload-avatar', png(64));
    const image = await fetch(new URL(avatarUrl, GATEWAY), { headers });
    assert.equal(image.headers.get('content-type'), 'image/webp');
  };
  return { setAvatar };
}

async function hearPause(socketKey: string, pause: () => Promise<unknown>): Promise<void> {
  const types: string[] = [];
  const socket = new WebSocket(REALTIME, ['cloudevents.json', `bearer.${socketKey}`]);
  socket.onmessage = ({ data }) => types.push(JSON.parse(String(data)).type);
  await eventually(() => types.includes('latchkey.connection.ready'));
  await pause();
  await eventually(() => types.includes('latchkey.application.paused'));
  socket.close();
}

/** A grey square. */
function png(size: number): Uint8Array {
  const chunk = (type: string, data: Buffer) => {
    const body = Buffer.concat([Buffer.from(type), data]);
    const ends = Buffer.alloc(8);
    ends.writeUInt32BE(data.length, 0);
    ends.writeUInt32BE(crc32(body), 4);
    return Buffer.concat([ends.subarray(0, 4), body, ends.subarray(4)]);
  };
  const header = Buffer.alloc(13);
  header.writeUInt32BE(size, 0);
  header.writeUInt32BE(size, 4);
  header[8] = 8;
  const rows = Buffer.alloc(size * (size + 1), 0x7f);
  for (let y = 0; y < size; y += 1) rows[y * (size + 1)] = 0;
  const signature = Buffer.from('89504e470d0a1a0a', 'hex');
  return Buffer.concat([signature, chunk('IHDR', header), chunk('IDAT', deflateSync(rows)), chunk('IEND', Buffer.alloc(0))]);
}
