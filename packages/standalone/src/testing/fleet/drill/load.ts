import { createHash, randomBytes } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { plain, UPLOAD_AVATAR } from '../../avatars.ts';
import { PASSWORD, unique } from '../../caller.ts';
import { TABLE, UPLOAD } from '../../files.ts';
import type { Kind } from './samples.ts';
import { type DrillRequest, sendOnce } from './send.ts';
import type { Uploader, World, Written } from './world.ts';

/** Requests of every kind, until they are stopped. */
export interface DrillLoad {
  /** Resolves once the last one has ended. */
  stop(): Promise<void>;
}

/** Clients that read settings, and the pause of each client of a kind between two requests, in milliseconds. */
const READERS = 8;
const PAUSE_MS: Readonly<Record<Exclude<Kind, 'revocation'>, number>> = {
  read: 50,
  table: 120,
  write: 100,
  upload: 150,
  'large upload': 400,
  'sign-in': 700,
  avatar: 700,
};

/** Kinds that a load consists of. */
export const KINDS: ReadonlySet<Kind> = new Set(Object.keys(PAUSE_MS) as Kind[]);

const SETTINGS = '/api/v1/panel/get-application-settings';
const SET = '/api/v1/panel/update-application-settings';

/** Starts everything. */
export function startDrillLoad(world: World): DrillLoad {
  const stopping = new AbortController();
  const repeat = async (kind: keyof typeof PAUSE_MS, step: () => Promise<unknown>) => {
    while (!stopping.signal.aborted) {
      await step();
      await pause(PAUSE_MS[kind], undefined, { signal: stopping.signal }).catch(() => undefined);
    }
  };
  const send = (sent: Omit<DrillRequest, 'baseUrl'>) => sendOnce(world.samples, { baseUrl: world.fleet.baseUrl, ...sent });
  const { key, owner, portrayed, written, uploaders } = world;
  const readers = Array.from({ length: READERS }, (_, i) => {
    const { headers } = i % 2 === 0 ? key.api : owner.session;
    const query = { applicationId: written[i % written.length]?.applicationId ?? '' };
    return repeat('read', () => send({ kind: 'read', method: 'GET', path: SETTINGS, query, headers }));
  });
  const working = Promise.all([
    ...readers,
    ...written.map((application, number) => repeat('write', () => write(send, world, application, number))),
    ...uploaders.map((uploader) => repeat(kindOf(uploader), () => upload(send, uploader))),
    repeat('table', () => {
      const { applicationId, key: uploaderKey } = world.random.pick(uploaders);
      const query = { applicationId, currentPage: '1' };
      return send({ kind: 'table', method: 'GET', path: TABLE, query, headers: uploaderKey.api.headers });
    }),
    repeat('sign-in', () => {
      const body = { email: owner.email, password: PASSWORD };
      return send({ kind: 'sign-in', method: 'POST', path: '/api/v1/auth/sign-in', headers: {}, body });
    }),
    repeat('avatar', async () => {
      const body = await plain(64, 64).png().toBuffer();
      return send({ kind: 'avatar', method: 'POST', path: UPLOAD_AVATAR, headers: portrayed.session.headers, body });
    }),
  ]);
  return {
    async stop() {
      stopping.abort();
      await working;
    },
  };
}

type Send = (sent: Omit<DrillRequest, 'baseUrl'>) => ReturnType<typeof sendOnce>;

const kindOf = ({ byteSize }: Uploader) => (byteSize > 1_000_000 ? 'large upload' : 'upload');

/** Whether a request may have had its effect all the same. */
const mayHaveTaken = (outcome: string) => outcome.startsWith('lost') || outcome.startsWith('5');

async function write(send: Send, { key }: World, { applicationId, accepted, inDoubt }: Written, number: number): Promise<void> {
  const value = `${number}-${accepted.size + inDoubt.length + 1}`;
  const body = { field: 'version', value };
  const { outcome } = await send({
    kind: 'write',
    method: 'PATCH',
    path: SET,
    query: { applicationId },
    headers: key.api.headers,
    body,
  });
  if (outcome === '200') accepted.set(value, performance.now());
  else if (mayHaveTaken(outcome)) inDoubt.push(value);
}

async function upload(send: Send, uploader: Uploader): Promise<void> {
  const { applicationId, byteSize, key, accepted, inDoubt } = uploader;
  const fileName = unique();
  const body = randomBytes(byteSize);
  const query = { applicationId, fileName };
  const { outcome } = await send({ kind: kindOf(uploader), method: 'POST', path: UPLOAD, query, headers: key.api.headers, body });
  if (outcome === '200') accepted.set(fileName, createHash('sha256').update(body).digest('hex'));
  else if (mayHaveTaken(outcome)) inDoubt.add(fileName);
}
