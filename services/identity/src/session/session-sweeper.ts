import type { Logger } from '@latchkey/kit/logger';
import type { Kysely } from 'kysely';
import type { IdentityDatabase } from '../db/schema.ts';
import { deleteIdleSessions } from './session.store.ts';
import { idleSince } from './session-lifetime.ts';

/** Most sessions removed in one go. Each sign-in adds one and removes up to so many, so that ended ones can't pile up. */
const SWEEP_LIMIT = 100;

/** Removes ended sessions behind the scenes. */
export interface SessionSweeper {
  /** Begins a sweep unless one is under way. */
  sweep(): void;
  /** Resolves when no sweep is under way. */
  idle(): Promise<void>;
}

/**
 * Removes what is idle, and by that also what is too old: a session past its absolute end is not seen any more, and so is idle a
 * week later.
 */
export function createSessionSweeper(db: Kysely<IdentityDatabase>, clock: () => Date, logger: Logger): SessionSweeper {
  let current: Promise<void> | undefined;
  const run = async () => {
    try {
      await deleteIdleSessions(db, idleSince(clock()), SWEEP_LIMIT);
    } catch (err) {
      logger.warn({ err }, 'ended sessions not removed');
    } finally {
      current = undefined;
    }
  };
  return {
    sweep() {
      current ??= run();
    },
    idle: async () => current,
  };
}
