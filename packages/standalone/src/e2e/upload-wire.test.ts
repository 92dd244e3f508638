import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eventually } from '@latchkey/testkit/eventually';
import { openRawClient } from '@latchkey/testkit/raw-client';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Api } from '../testing/api.ts';
import { createApplication, createKey, signUp } from '../testing/caller.ts';
import { curlUpload } from '../testing/curl.ts';
import { listNames, MIB, outcome, UPLOAD, upload } from '../testing/files.ts';
import { type OwnInstance, startOwnInstance } from '../testing/own-instance.ts';
import { parseAnswers } from '../testing/raw-request.ts';
import { openUpload, startUpload } from '../testing/running-upload.ts';

/** Far more than fits in the buffers between a client and the service. */
const FAR_TOO_LARGE = 24 * MIB;
const ATTEMPTS = 12;
/** Long enough for uploads of 24 MiB on a busy machine. */
const DEADLINE_S = 5;

let instance: OwnInstance;
let folder: string;
beforeAll(async () => {
  [instance, folder] = await Promise.all([
    startOwnInstance({
      env: {
        FILE_SIZE_LIMIT_MIB: '1',
        UPLOAD_ATTEMPTS_PER_MINUTE: String(ATTEMPTS),
        UPLOAD_DEADLINE_SECONDS: String(DEADLINE_S),
      },
    }),
    mkdtemp(join(tmpdir(), 'latchkey-curl-')),
  ]);
  await writeFile(join(folder, 'fits'), new Uint8Array(MIB));
  await writeFile(join(folder, 'large'), new Uint8Array(FAR_TOO_LARGE));
});
afterAll(async () => {
  await instance.stop();
  await rm(folder, { recursive: true, force: true });
});

/** A new account’s key and application, so that no limit of another test is in the way. */
async function createUploader(): Promise<{ api: Api; applicationId: string }> {
  const { api } = await createKey(await signUp(instance.api));
  return { api, applicationId: await createApplication(api) };
}

/** A body whose size nobody knows before its end. */
function streamOf(byteSize: number): ReadableStream<Uint8Array> {
  const chunk = new Uint8Array(MIB);
  let left = byteSize;
  return new ReadableStream({
    pull(controller) {
      controller.enqueue(chunk.subarray(0, left));
      left -= MIB;
      if (left <= 0) controller.close();
    },
  });
}

describe('the refusal of a body that is too large reaches', () => {
  it.each([true, false])('fetch, where it says the size: %s', async (says) => {
    const { api, applicationId } = await createUploader();
    const response = await fetch(`${api.baseUrl}${UPLOAD}?${new URLSearchParams({ applicationId, fileName: 'large' })}`, {
      method: 'POST',
      headers: { ...api.headers, 'content-type': 'application/octet-stream' },
      body: says ? new Uint8Array(FAR_TOO_LARGE) : streamOf(FAR_TOO_LARGE),
      duplex: 'half',
    } as RequestInit);
    expect([response.status, await response.json()]).toEqual([413, expect.objectContaining({ code: 'limit_exceeded' })]);
    expect(await listNames(api, applicationId)).toEqual([]);
    expect(outcome(await upload(api, applicationId, 'large', new Uint8Array(MIB)))).toBe('200');
  });

  it.each([
    ['Content-Length', `Content-Length: ${FAR_TOO_LARGE}`, ''],
    ['Transfer-Encoding', 'Transfer-Encoding: chunked', `${FAR_TOO_LARGE.toString(16)}\r\n`],
  ])('a client that sends all before it reads, with %s, and the connection ends in good order', async (_name, header, before) => {
    const { api, applicationId } = await createUploader();
    const client = await openRawClient(instance.port);
    client.socket.pause();
    const { authorization } = api.headers;
    const target = `${UPLOAD}?applicationId=${applicationId}&fileName=large`;
    client.socket.write(`POST ${target} HTTP/1.1\r\nHost: x\r\nAuthorization: ${authorization}\r\n${header}\r\n\r\n${before}`);
    await client.pour(FAR_TOO_LARGE);
    client.socket.resume();
    client.socket.end();
    expect(await client.ended).toBe('end');
    const [answer, ...others] = parseAnswers(Buffer.from(client.received(), 'latin1'));
    expect([answer?.status, JSON.parse(answer?.text ?? '').code, others]).toEqual([413, 'limit_exceeded', []]);
    expect(answer?.headers.connection).toBe('close');
    expect(await listNames(api, applicationId)).toEqual([]);
  });

  const CURL: ReadonlyArray<readonly [string, (file: string) => string[]]> = [
    ['-T file', (file) => ['-T', file]],
    ['-T -', () => ['-T', '-']],
    ['--data-binary @file', (file) => ['--data-binary', `@${file}`]],
  ];
  const EXPECTATIONS: ReadonlyArray<readonly [string, string]> = [
    ['with an expectation', 'Expect: 100-continue'],
    ['without', 'Expect:'],
  ];
  const CASES = CURL.flatMap(([name, args]) => EXPECTATIONS.map(([how, header]) => [name, how, args, header] as const));

  it.each(CASES)('curl %s %s, which uploads what fits in the same way', async (_name, _how, args, header) => {
    const { api, applicationId } = await createUploader();
    const curl = (file: string, size: number) =>
      curlUpload(api, { applicationId, fileName: file }, ['-H', header, ...args(join(folder, file))], size);
    const refused = await curl('large', FAR_TOO_LARGE);
    expect([refused.exitCode, outcome(refused.answer)]).toEqual([0, '413 limit_exceeded']);
    expect(await listNames(api, applicationId)).toEqual([]);
    const stored = await curl('fits', MIB);
    expect([stored.exitCode, outcome(stored.answer), stored.answer.data.byteSize]).toEqual([0, '200', MIB]);
  });
});

describe('100 Continue', () => {
  it('is said to an upload once it is let in, and to none that is refused', async () => {
    const { api, applicationId } = await createUploader();
    const heard = async (caller: Api, fileName: string) => {
      const running = openUpload(caller, { applicationId, fileName, headers: { 'content-length': '1' } });
      let asked = false;
      running.request.once('continue', () => {
        asked = true;
        running.request.end('x');
      });
      const answer = await running.answer;
      running.request.destroy();
      return [asked, outcome(answer)];
    };
    expect(await heard(api, 'fine')).toEqual([true, '200']);
    expect(await heard(api, 'fine')).toEqual([false, '409 file_name_taken']);
    expect(await heard(instance.api, 'fine')).toEqual([false, '401 api_key_invalid']);
  });

  it('is said on a route that takes JSON too, and not before its caller is known', async () => {
    const { authorization = '' } = (await createUploader()).api.headers;
    const body = JSON.stringify({ name: 'expected application' });
    const head = (credential: string) =>
      `POST /api/v1/panel/create-application HTTP/1.1\r\nHost: x\r\nAuthorization: ${credential}\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: ${body.length}\r\n\r\n`;
    const known = await openRawClient(instance.port);
    known.socket.write(head(authorization));
    await eventually(() => known.received() === 'HTTP/1.1 100 Continue\r\n\r\n');
    known.socket.write(body);
    await eventually(() => known.received().includes('"success":true'));
    known.socket.destroy();
    const unknown = await openRawClient(instance.port);
    unknown.socket.write(head('Bearer nobody'));
    await eventually(() => unknown.received().includes('api_key_invalid'));
    expect(unknown.received()).not.toContain('100 Continue');
    unknown.socket.destroy();
  });
});

describe('an upload that stalls', () => {
  it.concurrent.each([
    ['before its first byte', 0, {}],
    ['half way', MIB / 2, { 'content-length': String(MIB) }],
    ['half way in chunks', MIB / 2, {}],
    ['before its last byte', MIB - 1, { 'content-length': String(MIB) }],
  ])('%s is ended at its deadline, leaves nothing, and can be tried again', async (_when, byteSize, headers) => {
    const { api, applicationId } = await createUploader();
    const startedAt = performance.now();
    const running = await startUpload(api, { applicationId, fileName: 'stalled', headers: headers as Record<string, string> });
    await running.send(new Uint8Array(byteSize));
    expect(outcome(await running.answer)).toBe('408 upload_timeout');
    running.request.destroy();
    const elapsedMs = performance.now() - startedAt;
    expect(elapsedMs).toBeGreaterThan(DEADLINE_S * 1_000 - 50);
    expect(await listNames(api, applicationId)).toEqual([]);
    expect(outcome(await upload(api, applicationId, 'stalled'))).toBe('200');
  });

  it.each(['ends', 'is reset'])('and whose connection %s leaves nothing and frees the account soon', async (how) => {
    const { api, applicationId } = await createUploader();
    const running = await startUpload(api, { applicationId, fileName: 'cut' });
    await running.send(new Uint8Array(1_000));
    if (how === 'ends') running.request.destroy();
    else running.request.socket?.resetAndDestroy();
    await expect(running.answer).rejects.toThrow();
    // As few tries as the attempts of a minute allow.
    const bounds = { intervalMs: 500, timeoutMs: 4_000 };
    await eventually(async () => expect(outcome(await upload(api, applicationId, 'cut'))).toBe('200'), bounds);
  });
});

describe('upload attempts', () => {
  it('are counted for the account, whatever comes of them, and denied past their limit', async () => {
    const owner = await signUp(instance.api);
    const keys = [owner.session, (await createKey(owner)).api, (await createKey(owner)).api];
    const applicationId = await createApplication(owner.session);
    const answers = [];
    for (let i = 0; i < ATTEMPTS + 2; i += 1) {
      const fileName = i % 2 ? '..' : `file-${i}`;
      answers.push(await upload(keys[i % 3] as Api, applicationId, fileName));
    }
    const expected = Array.from({ length: ATTEMPTS }, (_, i) => (i % 2 ? '400 VALIDATION_ERROR' : '200'));
    expect(answers.map(outcome)).toEqual([...expected, ...Array(2).fill('429 rate_limit_reached')]);
    const { headers } = answers.at(-1) as (typeof answers)[number];
    expect(headers.get('ratelimit-policy')).toBe(`"uploads";q=${ATTEMPTS};w=60`);
    expect(headers.get('ratelimit')).toBe(`"uploads";r=0;t=${headers.get('retry-after')}`);
    const other = await createUploader();
    expect(outcome(await upload(other.api, other.applicationId, 'fine'))).toBe('200');
    expect((await owner.session.get('/api/v1/panel/get-applications')).status).toBe(200);
  });
});
