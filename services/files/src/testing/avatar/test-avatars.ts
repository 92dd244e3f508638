import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import { DomainError } from '@latchkey/kit/errors/errors';
import { beforeAll, beforeEach } from 'vitest';
import { sweepAvatars } from '../../avatars/avatar.ts';
import type { AvatarLimits } from '../../avatars/avatar-quota.ts';
import { type MakeContext, makeAvatar } from '../../avatars/make-avatar.ts';
import { createReceiveAvatar, type ReceiveAvatar } from '../../avatars/receive-avatar.ts';
import { createSetAvatar } from '../../avatars/set-avatar.client.ts';
import type { FilesContext } from '../../context.ts';
import { sweepObjectDeletions } from '../../storage/object-deletion/object-deletion.ts';
import { type InstanceOptions, startTestFiles } from '../test-files.ts';
import { createFakeIdentity } from './fake-identity.ts';
import { plainImage } from './images.ts';

export interface AvatarOptions extends Omit<InstanceOptions, 'limits'> {
  readonly limits?: Partial<AvatarLimits>;
  /** Replaces the queue, and the worker behind it, which makes each avatar immediately. */
  readonly enqueue?: (id: string, priority: number) => Promise<void>;
}

/** One instance of the service; a stub stands for its decoders. */
export interface AvatarInstance {
  readonly ctx: MakeContext & Pick<FilesContext, 'processLock'>;
  /** Sends an image, from another network each time; resolves with the avatar's id. */
  upload(accountId: string, image: Buffer | Readable, sent?: Partial<Parameters<ReceiveAvatar>[0]>): Promise<string>;
}

export type TestAvatars = Awaited<ReturnType<typeof startTestAvatars>>;

/** Sends an image through an instance's {@link ReceiveAvatar}. */
export function uploadTo(receive: ReceiveAvatar): AvatarInstance['upload'] {
  return async (accountId, image, sent) => {
    const body = image instanceof Readable ? image : Readable.from([image]);
    const usual = { accountId, clientNetwork: randomUUID(), body, byteSize: undefined, requestId: 'request-1' };
    return (await receive({ ...usual, ...sent })).avatarId;
  };
}

/** The service for all tests of a file. Its members are there once the tests run. */
export function useTestAvatars(): TestAvatars {
  const test = {} as TestAvatars;
  beforeAll(async () => {
    Object.assign(test, await startTestAvatars());
    return () => test.stop();
  });
  beforeEach(() => {
    test.identity.before = test.identity.after = async () => undefined;
  });
  return test;
}

/** The service on a new database and folder, beside a fake identity service. */
async function startTestAvatars() {
  const files = await startTestFiles();
  const identity = createFakeIdentity();
  /** A PNG. */
  const image = await plainImage(60, 40).png().toBuffer();
  const webp = await plainImage(20, 20).webp().toBuffer();
  const decoders = { convert: async () => webp, close: () => undefined };
  const connect = ({ limits, enqueue, ...options }: AvatarOptions = {}): AvatarInstance => {
    const opened = files.connect(options).ctx;
    const avatarLimits = { ...opened.avatarLimits, ...limits };
    const ctx = { ...opened, avatarLimits, decoders, setAvatar: createSetAvatar(identity.transport) };
    const make = async (id: string) => void makeAvatar(ctx, id).catch(() => undefined);
    return { ctx, upload: uploadTo(createReceiveAvatar(ctx, enqueue ?? make)) };
  };
  const instance = connect();
  return {
    ...instance,
    files,
    identity,
    image,
    connect,
    /** Makes everything due that the sweeper removes or records, and sweeps. */
    async sweepAll() {
      await files.db.query('update object_deletion set due_at = now()');
      await files.db.query(`update avatar set due_at = now() - interval '1 s' where state <> 'recorded'`);
      const { signal } = new AbortController();
      await sweepAvatars(instance.ctx, 1_000, signal);
      await sweepObjectDeletions(files.ctx, signal);
    },
    stop: () => files.stop(),
  };
}

export const someAccount = (): string => randomUUID();

/** An account's avatars: states of rows, and numbers of objects and of scheduled deletions. */
export async function avatarHoldings({ files }: Pick<TestAvatars, 'files'>, accountId: string) {
  const { rows } = await files.db.query('select state from avatar where account_id = $1 order by created_at, id', [accountId]);
  const scheduled = `select count(*)::int as n from object_deletion where object_key like $1 || '/%'`;
  const notes = await files.db.query(scheduled, [accountId]);
  let objects = 0;
  for await (const object of files.ctx.store.list()) if (object.key.startsWith(accountId)) objects += 1;
  return { states: rows.map(({ state }) => state as string), objects, notes: notes.rows[0].n as number };
}

/** The reason why an upload was rejected, or `done`. Throws unexpected errors. */
export async function reasonOf(upload: Promise<unknown>): Promise<string> {
  try {
    await upload;
    return 'done';
  } catch (err) {
    if (err instanceof DomainError) return err.reason;
    throw err;
  }
}
