import { eventually } from '@latchkey/testkit/eventually';
import { createApplication, createKey, type Key, type Owner, signUp } from '../../caller.ts';
import { readSocketKey } from '../../live.ts';
import type { SeededRandom } from '../../random.ts';
import type { Fleet } from '../fleet.ts';
import type { Links } from './links.ts';
import { Listener } from './listeners.ts';
import { Samples } from './samples.ts';
import type { DrillServers } from './servers.ts';

/** An application whose version one worker changes, and what became of that. */
export interface Written {
  readonly applicationId: string;
  /** Clients that are to hear of each change. */
  readonly listeners: readonly Listener[];
  /** Versions that were answered 200, in that order, and when. */
  readonly accepted: Map<string, number>;
  /** Versions that had no answer, or one that says that something was down. */
  readonly inDoubt: string[];
}

/** Somebody who uploads one file after the other, and what became of them. */
export interface Uploader {
  readonly key: Key;
  applicationId: string;
  readonly byteSize: number;
  /** Names that were answered 200, and the SHA-256 of what was sent. */
  readonly accepted: Map<string, string>;
  /** Names that may have been stored. */
  readonly inDoubt: Set<string>;
}

/** All that a drill is about. */
export interface World {
  readonly fleet: Fleet;
  readonly links: Links;
  readonly servers: DrillServers;
  readonly random: SeededRandom;
  readonly samples: Samples;
  /** Who reads and writes settings. */
  readonly owner: Owner;
  readonly key: Key;
  readonly written: readonly Written[];
  readonly uploaders: readonly Uploader[];
  /** Who has an avatar. */
  readonly portrayed: Owner;
}

const WRITERS = 2;
const LISTENERS = 2;
const SMALL_BYTES = 20_000;
const LARGE_BYTES = 3 * 1_024 * 1_024;
const UPLOADER_BYTES = [SMALL_BYTES, SMALL_BYTES, LARGE_BYTES, LARGE_BYTES];

/** Makes accounts, keys and applications for a drill, all through the gateways, and lets clients listen. */
export async function createWorld(made: Pick<World, 'fleet' | 'links' | 'servers' | 'random'>): Promise<World> {
  const { api, realtimeUrl } = made.fleet;
  const owner = await signUp(api);
  const key = await createKey(owner);
  const written = await times(WRITERS, async (): Promise<Written> => {
    const applicationId = await createApplication(key.api);
    const socketKey = await readSocketKey(key.api, applicationId);
    const listeners = await times(LISTENERS, async () => new Listener(realtimeUrl, socketKey));
    return { applicationId, listeners, accepted: new Map(), inDoubt: [] };
  });
  const uploaders = await times(UPLOADER_BYTES.length, async (i): Promise<Uploader> => {
    const uploaderKey = await createKey(await signUp(api));
    const byteSize = UPLOADER_BYTES[i] as number;
    return { key: uploaderKey, applicationId: '', byteSize, accepted: new Map(), inDoubt: new Set() };
  });
  await eventually(() => written.every(({ listeners }) => listeners.every(({ isListening }) => isListening)));
  return { ...made, samples: new Samples(), owner, key, written, uploaders, portrayed: await signUp(api) };
}

/** Gives everyone who uploads an application without files; those of the one before go with it. */
export async function renewApplications({ uploaders }: World): Promise<void> {
  for (const uploader of uploaders) {
    const { key, applicationId, accepted, inDoubt } = uploader;
    uploader.applicationId = await createApplication(key.api);
    if (applicationId) await key.api.delete('/api/v1/panel/delete-application', { applicationId, code: '' });
    accepted.clear();
    inDoubt.clear();
  }
}

/** Ends what goes on by itself. */
export async function leaveWorld({ written }: World): Promise<void> {
  await Promise.all(written.flatMap(({ listeners }) => listeners.map((listener) => listener.stop())));
}

const times = <T>(count: number, make: (i: number) => Promise<T>): Promise<T[]> =>
  Promise.all(Array.from({ length: count }, (_, i) => make(i)));
