import type { FilesConfig } from '../config.ts';

/** Limits of avatars (specification 4.2), in the units they are used in. */
export interface AvatarLimits {
  readonly byteSizeMax: number;
  readonly pixelsMax: number;
  /** Longest time that a body may take. */
  readonly bodyMs: number;
  /** Longest wait for a worker. */
  readonly waitMs: number;
  readonly decodesAtOnce: number;
  /** Longest time that decoding one image may take. */
  readonly decodeMs: number;
  /** Concurrent uploads through one process. */
  readonly uploadsAtOnce: number;
}

const PIXELS_MAX = 16_000_000;
/** 3 MiB at 1.3 Mbit/s. Each upload holds a slot of few meanwhile. */
const BODY_MS_MAX = 20_000;
/** Long enough for another worker to take over from one that died, after 10 to 15 s. */
const WAIT_MS = 25_000;
/** The slowest image takes 0.7 s of a core; decoders get what other processes leave. */
export const DECODE_MS = 10_000;

type LimitSettings = Pick<
  FilesConfig,
  'AVATAR_SIZE_LIMIT_KIB' | 'AVATAR_DECODES_AT_ONCE' | 'AVATARS_AT_ONCE' | 'UPLOAD_DEADLINE_SECONDS'
>;

export function createAvatarLimits(config: LimitSettings): AvatarLimits {
  return {
    byteSizeMax: config.AVATAR_SIZE_LIMIT_KIB * 1_024,
    pixelsMax: PIXELS_MAX,
    bodyMs: Math.min(config.UPLOAD_DEADLINE_SECONDS * 1_000, BODY_MS_MAX),
    waitMs: WAIT_MS,
    decodesAtOnce: config.AVATAR_DECODES_AT_ONCE,
    decodeMs: DECODE_MS,
    uploadsAtOnce: config.AVATARS_AT_ONCE,
  };
}
