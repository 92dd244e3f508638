import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import { DomainError } from '@latchkey/kit/errors';
import { testRedis } from '@latchkey/testkit/redis';
import { type Avatars, createAvatars } from '../../avatar/avatars.compose.ts';
import type { ObjectStore } from '../../storage/object-store/object-store.ts';
import { type InstanceOptions, startTestFiles, type TestFiles } from '../test-files.ts';
import { createFakeIdentity, type FakeIdentity } from './fake-identity.ts';

/** How one instance of the service does avatars. */
export interface AvatarInstanceOptions extends InstanceOptions {
  readonly worker?: 'inside' | 'apart';
  readonly redisUrl?: string;
}

/** One instance, with the ways into it. */
export interface AvatarInstance {
  readonly ctx: TestFiles['ctx'];
  readonly avatars: Avatars;
  /** Sends an image for an account, from anywhere and by nobody unless that is said, and answers the avatar's id. */
  upload(
    accountId: string,
    image: Buffer | Readable,
    sent?: { readonly byteSize?: number; readonly clientNetwork?: string; readonly actor?: string },
  ): Promise<string>;
}

/** The service on a database, a folder and a Redis of its own, beside an identity service that only knows avatars. */
export interface TestAvatars extends AvatarInstance {
  readonly files: TestFiles;
  readonly identity: FakeIdentity;
  readonly redisUrl: string;
  /** Starts another instance on the same servers; it stops with the first. */
  connect(options?: AvatarInstanceOptions): AvatarInstance;
  stop(): Promise<void>;
}

export async function startTestAvatars(options: AvatarInstanceOptions = {}): Promise<TestAvatars> {
  const files = await startTestFiles();
  const identity = createFakeIdentity();
  const redisUrl = options.redisUrl ?? (await testRedis()).url;
  const started: Avatars[] = [];
  const connect = ({ worker = 'inside', ...given }: AvatarInstanceOptions = {}): AvatarInstance => {
    const { ctx } = files.connect(given);
    const avatars = createAvatars(ctx, { identityTransport: identity.transport, redisUrl: given.redisUrl ?? redisUrl }, worker);
    avatars.start();
    started.push(avatars);
    const upload: AvatarInstance['upload'] = async (accountId, image, { byteSize, clientNetwork = randomUUID(), actor } = {}) => {
      const body = image instanceof Readable ? image : Readable.from(pieces(image));
      const sent = { accountId, clientNetwork, body, byteSize, requestId: 'request-1', actor };
      return (await avatars.receive(sent)).avatarId;
    };
    return { ctx, avatars, upload };
  };
  return {
    ...connect(options),
    files,
    identity,
    redisUrl,
    connect,
    async stop() {
      await Promise.all(started.map((avatars) => avatars.stop()));
      await files.stop();
    },
  };
}

/** Bytes as they come from a socket. */
function* pieces(bytes: Buffer): Generator<Buffer> {
  for (let at = 0; at < bytes.length; at += 65_536) yield bytes.subarray(at, at + 65_536);
}

export const someAccount = (): string => randomUUID();

/** Everything that an account has of avatars: the states of its rows, its objects, and notes of objects to remove. */
export async function avatarHoldings({ files }: Pick<TestAvatars, 'files'>, accountId: string) {
  const { rows } = await files.db.query('select state from avatar where account_id = $1 order by created_at, id', [accountId]);
  const notes = await files.db.query(`select count(*)::int as n from object_deletion where object_key like $1 || '/%'`, [
    accountId,
  ]);
  let objects = 0;
  for await (const object of files.ctx.store.list()) if (object.key.startsWith(accountId)) objects += 1;
  return { states: rows.map(({ state }) => state as string), objects, notes: notes.rows[0].n as number };
}

/** The reason that an upload was refused for, or `done`. Throws where it failed with a defect. */
export async function reasonOf(upload: Promise<unknown>): Promise<string> {
  try {
    await upload;
    return 'done';
  } catch (err) {
    if (err instanceof DomainError) return err.reason;
    throw err;
  }
}

/** A store in which some methods are others. */
export function storeWith(store: ObjectStore, methods: Partial<ObjectStore>): ObjectStore {
  return Object.assign(Object.create(store), methods);
}
