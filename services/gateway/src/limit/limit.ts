/** A number of events allowed in a window that begins with the first of them. */
export interface Limit {
  /** Name in the `RateLimit` headers, and of the counters. */
  readonly name: string;
  readonly max: number;
  readonly windowMs: number;
}

/** Where a limit stands after an event. */
export interface Standing {
  readonly limit: Limit;
  readonly allowed: boolean;
  readonly remaining: number;
  /** Time until the window ends, in milliseconds. */
  readonly resetMs: number;
}

/** @param count events in the window, this one included */
export function standing(limit: Limit, count: number, resetMs: number): Standing {
  return { limit, allowed: count <= limit.max, remaining: Math.max(0, limit.max - count), resetMs: Math.max(0, resetMs) };
}

/** The standing that denied, else the one that will deny first. */
export function tighter(a: Standing | undefined, b: Standing): Standing {
  if (!a || !b.allowed) return b;
  return !a.allowed || a.remaining <= b.remaining ? a : b;
}
