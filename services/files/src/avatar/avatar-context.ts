import type { Origin } from '@latchkey/audit/actor';
import type { FilesContext } from '../context.ts';

/** How identity is told of an avatar. */
export interface AvatarClaim {
  readonly accountId: string;
  readonly avatarId: string;
  readonly uploadedAt: Date;
  /** Who sent it. */
  readonly origin: Origin;
}

/**
 * Tells identity of an avatar that is stored; it may be told again at any time.
 *
 * @returns the avatar that the account has from then on: this one, or one that was uploaded later
 * @throws DomainError `account_not_found`, or `dependency_unavailable` where identity can't be asked
 */
export type SetAvatar = (claim: AvatarClaim) => Promise<string>;

/** What the use cases of avatars work on. */
export interface AvatarContext extends Pick<FilesContext, 'db' | 'store' | 'avatarLimits' | 'logger'> {
  readonly setAvatar: SetAvatar;
}

/** How long the row of an avatar that is through is kept, for who waits for it, in milliseconds. */
export const ENDED_KEPT_MS = 10 * 60_000;
