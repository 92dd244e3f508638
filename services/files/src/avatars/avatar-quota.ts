import { AVATAR_BYTES_MAX, AVATAR_PIXELS_MAX } from '@latchkey/contract/avatar';
import { acquireAll, ConcurrencyLimit } from '@latchkey/kit/http/concurrency-limit';
import { createShare } from '../concurrency-share.ts';
import type { FilesConfig } from '../config.ts';
import { errors } from '../proto-errors.ts';

export type AvatarLimits = Readonly<ReturnType<typeof createAvatarLimits>>;

const UPLOADS_MAX = 64;
/** Two, as a few accounts with slow bodies must not use up the limit. */
const UPLOADS_OF_ACCOUNT_MAX = 2;
/** 3 MiB at 1.3 Mbit/s. Each upload occupies one of few slots while it runs. */
const BODY_MS_MAX = 20_000;
/** Long enough for another worker to take over from one that died, after 10 to 15 s. */
const WAIT_MS = 25_000;
/** The slowest image takes 0.7 s of a core; decoders get what other processes leave. */
export const DECODE_MS = 10_000;

export function createAvatarLimits(config: Pick<FilesConfig, 'AVATAR_DECODES_AT_ONCE' | 'UPLOAD_DEADLINE_SECONDS'>) {
  return {
    byteSizeMax: AVATAR_BYTES_MAX,
    pixelsMax: AVATAR_PIXELS_MAX,
    bodyMs: Math.min(config.UPLOAD_DEADLINE_SECONDS * 1_000, BODY_MS_MAX),
    waitMs: WAIT_MS,
    decodesMax: config.AVATAR_DECODES_AT_ONCE,
    decodeMs: DECODE_MS,
    uploadsMax: UPLOADS_MAX,
  };
}

export function createUploadQuota({ uploadsMax, bodyMs, waitMs }: AvatarLimits) {
  const ofAccount = new ConcurrencyLimit(UPLOADS_OF_ACCOUNT_MAX);
  const ofNetwork = createShare(uploadsMax, UPLOADS_OF_ACCOUNT_MAX);
  const total = new ConcurrencyLimit(uploadsMax);
  const toLimit = (policy: string, { max }: ConcurrencyLimit) => {
    return { policy, limit: max, windowMs: bodyMs + waitMs, retryMs: bodyMs };
  };
  return ({ accountId, clientNetwork }: { readonly accountId: string; readonly clientNetwork: string }) =>
    acquireAll(
      [ofAccount, accountId, () => errors.avatars_under_way(toLimit('avatars-at-once', ofAccount))],
      [ofNetwork, clientNetwork, () => errors.avatars_of_network(toLimit('avatars-at-once-ip', ofNetwork))],
      [total, '', errors.avatars_busy],
    );
}
