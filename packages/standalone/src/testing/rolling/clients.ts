import { hash, randomBytes } from 'node:crypto';
import type { Agent } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { plain, UPLOAD_AVATAR } from '../avatars.ts';
import { createApplication, createKey, type Key, signUp, unique } from '../caller.ts';
import { MIB, UPLOAD, upload } from '../files.ts';
import type { Fleet } from '../fleet/fleet.ts';
import { SERVICE_CREDENTIAL } from '../instance.ts';
import type { SeededRandom } from '../random.ts';
import type { Book } from './book.ts';
import { type Exchanged, exchange } from './exchange.ts';

/** A client of one kind: sends one request at a time, and says how it ended where that was no success. */
export interface RollingClient {
  readonly kind: string;
  /** Longest pause between two requests, in milliseconds; none unless set. */
  readonly thinkMsMax?: number;
  send(): Promise<string | undefined>;
}

/** What clients have that share an account. */
export interface Subject {
  readonly key: Key;
  readonly accountId: string;
  readonly applicationId: string;
}

export async function createSubject(fleet: Fleet): Promise<Subject> {
  const owner = await signUp(fleet.api);
  const key = await createKey(owner);
  return { key, accountId: owner.accountId, applicationId: await createApplication(key.api) };
}

const JSON_TYPE = { 'content-type': 'application/json' };
const BYTES_TYPE = { 'content-type': 'application/octet-stream' };
const unlessOk = ({ status, words }: Exchanged) => (status === 200 ? undefined : words);

/** Reads settings: each request on a connection of its own, or on those that an agent keeps. */
export function reader(fleet: Fleet, { key, applicationId }: Subject, agent?: Agent): RollingClient {
  const url = `${fleet.baseUrl}/api/v1/panel/get-application-settings?applicationId=${applicationId}`;
  const options = { headers: key.api.headers, ...(agent && { agent }) };
  return { kind: agent ? 'reads, kept connection' : 'reads', send: async () => unlessOk(await exchange(url, options)) };
}

/** Reads settings with `fetch`, which keeps connections too. */
export function fetcher(fleet: Fleet, { key, applicationId }: Subject): RollingClient {
  const url = `${fleet.baseUrl}/api/v1/panel/get-application-settings?applicationId=${applicationId}`;
  const send = async () => {
    try {
      const response = await fetch(url, { headers: key.api.headers });
      const text = await response.text();
      return response.status === 200 ? undefined : `${response.status} ${text}`;
    } catch (err) {
      return String((err as Error).cause ?? err);
    }
  };
  return { kind: 'reads, fetch', send };
}

/** Sets a version that there has never been, of which sockets are told. */
export function writer(
  fleet: Fleet,
  { key, applicationId }: Subject,
  { agent, onChange }: { agent?: Agent; onChange: () => void },
): RollingClient {
  const url = `${fleet.baseUrl}/api/v1/panel/update-application-settings?applicationId=${applicationId}`;
  const headers = { ...key.api.headers, ...JSON_TYPE };
  const send = async () => {
    const body = JSON.stringify({ field: 'version', value: unique().slice(0, 12) });
    const answer = await exchange(url, { method: 'PATCH', headers, body, ...(agent && { agent }) });
    if (answer.status === 200) onChange();
    return unlessOk(answer);
  };
  return { kind: agent ? 'writes, kept connection' : 'writes', send };
}

/** The kind of uploads that span a restart. */
export const SLOW_UPLOADS = 'slow uploads';

/** How large uploads are, and how slow. */
export interface UploadPace {
  readonly byteSize: number;
  readonly pieces?: number;
  readonly pauseMs?: number;
}

/** Uploads files, and holds each to the checksum that it is answered with; the names of all are kept with it. */
export function uploader(
  fleet: Fleet,
  { key, applicationId }: Subject,
  { byteSize, pieces = 1, pauseMs = 0 }: UploadPace,
  stored: Map<string, string>,
): RollingClient {
  const bytes = randomBytes(byteSize);
  const checksum = hash('sha256', bytes);
  const headers = { ...key.api.headers, ...BYTES_TYPE };
  const send = async () => {
    const fileName = unique();
    const url = `${fleet.baseUrl}${UPLOAD}?${new URLSearchParams({ applicationId, fileName })}`;
    const answer = await exchange(url, { method: 'POST', headers, body: bytes, pieces, pauseMs });
    if (answer.status === 200) stored.set(fileName, checksum);
    return unlessOk(answer);
  };
  return { kind: pieces > 1 ? SLOW_UPLOADS : 'uploads', send };
}

/** Sends images, of which the avatar of the account is made by a worker. */
export async function portrayer(fleet: Fleet): Promise<RollingClient> {
  const { session } = await signUp(fleet.api);
  const image = await plain(64, 64).png().toBuffer();
  const options = { method: 'POST', headers: { ...session.headers, ...BYTES_TYPE }, body: image };
  return { kind: 'avatars', send: async () => unlessOk(await exchange(fleet.baseUrl + UPLOAD_AVATAR, options)) };
}

const DOWNLOAD_BYTES = 16 * MIB;

/** Asks any files service for a URL and reads the file from there, slowly. */
export async function downloader(fleet: Fleet, { key, accountId, applicationId }: Subject): Promise<RollingClient> {
  const bytes = randomBytes(DOWNLOAD_BYTES);
  const { data } = await upload(key.api, applicationId, 'to be downloaded', bytes);
  const message = { accountId, applicationId, fileId: data.id };
  const headers = { ...JSON_TYPE, authorization: `Bearer ${SERVICE_CREDENTIAL}` };
  const send = async () => {
    const call = `${fleet.filesUrl}/latchkey.files.v1.FileService/CreateDownloadUrl`;
    const made = await exchange(call, { method: 'POST', headers, body: JSON.stringify(message) });
    if (made.status !== 200) return `no URL: ${made.words}`;
    const { url } = JSON.parse(String(made.body)) as { url: string };
    const { status, words, body } = await exchange(url, { headers: {}, readPauseMs: 5 });
    if (status !== 200) return words;
    return body.equals(bytes) ? undefined : `other bytes, ${body.byteLength} of ${bytes.byteLength}`;
  };
  return { kind: 'slow downloads', send };
}

/** Has a client send one request after the other until it is told to stop. */
export async function keepSending(
  client: RollingClient,
  { random, signal, book }: { random: SeededRandom; signal: AbortSignal; book: Book },
): Promise<void> {
  while (!signal.aborted) {
    book.begin(client.kind);
    book.end(client.kind, await client.send());
    if (client.thinkMsMax) await delay(random.below(client.thinkMsMax), undefined, { signal }).catch(() => undefined);
  }
}
