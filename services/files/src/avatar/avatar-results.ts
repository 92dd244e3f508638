import type { FilesContext } from '../context.ts';
import { selectSettled } from './avatar.store.ts';

/** What became of an avatar: it is the account's, or was; refused for a reason; or nobody knows yet. */
export type AvatarResult =
  | { readonly kind: 'done' }
  | { readonly kind: 'refused'; readonly reason: string }
  | { readonly kind: 'open' };

/** How results are waited for. */
export interface AvatarResults {
  /**
   * Waits for an avatar until it is settled, for so many milliseconds at most.
   *
   * @throws where the database can't be asked
   */
  wait(id: string, timeoutMs: number): Promise<AvatarResult>;
  /** Tells of an avatar that this process has settled. */
  settle(id: string, refusal: string | undefined): void;
}

/**
 * How often the database is asked, in milliseconds. One question serves all that wait in this process, and none is asked while nobody does: that is
 * cheaper than a connection to be told over, and what it answers is the truth.
 */
const ASK_INTERVAL_MS = 100;

interface Waiting {
  resolve(result: AvatarResult): void;
  reject(err: unknown): void;
}

/** Waits for what workers, in this process or in others, make of avatars. */
export function createAvatarResults({ db }: Pick<FilesContext, 'db'>): AvatarResults {
  const waiting = new Map<string, Waiting>();
  let asking = false;

  const settle: AvatarResults['settle'] = (id, refusal) => {
    waiting.get(id)?.resolve(refusal === undefined ? { kind: 'done' } : { kind: 'refused', reason: refusal });
  };
  const ask = async () => {
    const ids = [...waiting.keys()];
    try {
      for (const { id, state, refusal } of await selectSettled(db, ids)) {
        // What was given up is for who gave it up to say.
        if (state !== 'abandoned') settle(id, refusal);
      }
    } catch (err) {
      for (const id of ids) waiting.get(id)?.reject(err);
    }
  };
  const askLater = () => {
    if (asking || waiting.size === 0) return;
    asking = true;
    setTimeout(async () => {
      if (waiting.size > 0) await ask();
      asking = false;
      askLater();
    }, ASK_INTERVAL_MS);
  };
  return {
    settle,
    async wait(id, timeoutMs) {
      const { promise, resolve, reject } = Promise.withResolvers<AvatarResult>();
      waiting.set(id, { resolve, reject });
      const timer = setTimeout(() => resolve({ kind: 'open' }), timeoutMs);
      askLater();
      try {
        return await promise;
      } finally {
        clearTimeout(timer);
        waiting.delete(id);
      }
    },
  };
}
