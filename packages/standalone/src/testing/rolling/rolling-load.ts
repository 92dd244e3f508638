import { Agent } from 'node:http';
import { eventually } from '@latchkey/testkit/eventually';
import { listFiles, MIB } from '../files.ts';
import type { Fleet } from '../fleet/fleet.ts';
import { readSocketKey } from '../live.ts';
import { LiveFleet } from '../live-fleet.ts';
import { SeededRandom } from '../random.ts';
import { Book } from './book.ts';
import {
  createSubject,
  downloader,
  fetcher,
  keepSending,
  portrayer,
  type RollingClient,
  reader,
  type Subject,
  uploader,
  writer,
} from './clients.ts';

/** Requests of every kind, and sockets, that go on until they are stopped. */
export interface RollingLoad {
  readonly book: Book;
  readonly sockets: LiveFleet;
  /** Changes that were answered 200 so far. */
  changes(): number;
  /** Whether each socket has heard of as many. */
  heardAll(): boolean;
  /** Accepted uploads whose file is not there, or is another one. */
  missingFiles(): Promise<string[]>;
  stop(): Promise<void>;
}

const SOCKETS = 60;
const RECONNECT_MS_MAX = 500;

/** An upload takes long enough to span the restart of any process, and to be waited for by its stop. */
const SLOWLY = { byteSize: 4 * MIB, pieces: 32, pauseMs: 100 };
const SMALL = { byteSize: 5_000 };
const SLOW_UPLOADERS = 3;
const KEPT = 8;

/** Connects sockets, and then starts everything else. */
export async function startRollingLoad(fleet: Fleet, seed: number): Promise<RollingLoad> {
  const random = new SeededRandom(seed);
  const subjects = await Promise.all(Array.from({ length: SLOW_UPLOADERS + 1 }, () => createSubject(fleet)));
  const subject = subjects[0] as Subject;
  const stored = subjects.map(() => new Map<string, string>());
  const socketKey = await readSocketKey(subject.key.api, subject.applicationId);
  const options = { url: fleet.realtimeUrl, socketKey, random, reconnectDelayMsMax: RECONNECT_MS_MAX };
  const sockets = new LiveFleet({ ...options, count: SOCKETS });
  await eventually(() => sockets.connected === SOCKETS, { timeoutMs: 20_000 });
  const before = sockets.members[0]?.last ?? 0;
  let changes = 0;
  const onChange = () => {
    changes += 1;
  };
  const agent = new Agent({ keepAlive: true });
  const clients: RollingClient[] = [
    reader(fleet, subject),
    reader(fleet, subject),
    { ...writer(fleet, subject, { onChange }), thinkMsMax: 40 },
    ...Array.from({ length: KEPT }, () => ({ ...reader(fleet, subject, agent), thinkMsMax: 400 })),
    ...Array.from({ length: KEPT / 2 }, () => ({ ...writer(fleet, subject, { agent, onChange }), thinkMsMax: 400 })),
    { ...fetcher(fleet, subject), thinkMsMax: 200 },
    ...subjects.map((one, i) => uploader(fleet, one, i === 0 ? SMALL : SLOWLY, stored[i] as Map<string, string>)),
    { ...(await portrayer(fleet)), thinkMsMax: 100 },
    await downloader(fleet, subject),
  ];
  const book = new Book();
  const stopping = new AbortController();
  const { signal } = stopping;
  const working = Promise.all(clients.map((client) => keepSending(client, { random, signal, book })));
  return {
    book,
    sockets,
    changes: () => changes,
    heardAll: () => sockets.members.every(({ last }) => last === before + changes),
    async missingFiles() {
      const found = await Promise.all(
        subjects.map(async ({ key, applicationId }, i) => {
          const rows = new Map((await listFiles(key.api, applicationId)).map((row) => [row.displayName, row.checksum]));
          return [...(stored[i] as Map<string, string>)].filter(([name, checksum]) => rows.get(name) !== checksum);
        }),
      );
      return found.flat().map(([name]) => name);
    },
    async stop() {
      stopping.abort();
      await working;
      agent.destroy();
    },
  };
}
