import type { Length } from './lengths.ts';

export const LICENSE_LEVEL: Length = { min: 1, max: 16 };

/** Most license levels of an application. */
export const LICENSE_LEVELS_MAX = 1_000;
