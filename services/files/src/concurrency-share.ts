import { ConcurrencyLimit } from '@latchkey/kit/http/concurrency-limit';

/** Share of a concurrency limit for one network or one file, so that it can't block others. */
const SHARE = 0.25;

export const createShare = (max: number, atLeast = 1) => new ConcurrencyLimit(Math.max(atLeast, Math.floor(max * SHARE)));
