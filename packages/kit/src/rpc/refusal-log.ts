import { canonicalIp } from '../http/client-ip.ts';
import type { Logger } from '../logger.ts';

/** Notes that somebody was refused. The address is as the socket has it; the facts are logged as they are. */
export type NoteRefusal = (remoteAddress: string | undefined, facts?: Readonly<Record<string, string>>) => void;

/** How long nothing more is said of an address, in milliseconds. */
const INTERVAL_MS = 60_000;

/** Most addresses that are told apart. */
const ADDRESSES_MAX = 100;

/** Stands for all addresses beyond them. */
const OTHERS = 'others';

/**
 * Logs who is refused, and how often since it was last said: of each address at once, and then once a minute at most. Whoever reaches the port can have no
 * more written than that, nor more kept.
 *
 * @param nowMs a clock that only goes forward, in milliseconds
 */
export function createRefusalLog(logger: Logger, message: string, nowMs = (): number => performance.now()): NoteRefusal {
  // In the order in which they were told of.
  const told = new Map<string, { readonly atMs: number; since: number }>();
  const placeOf = (address: string, isOver: (atMs: number) => boolean): string => {
    if (told.has(address) || told.size < ADDRESSES_MAX) return address;
    const [oldest, { atMs }] = told.entries().next().value as [string, { atMs: number }];
    if (!isOver(atMs)) return OTHERS;
    told.delete(oldest);
    return address;
  };
  return (remoteAddress, facts) => {
    const now = nowMs();
    const isOver = (atMs: number) => now - atMs >= INTERVAL_MS;
    const address = placeOf(canonicalIp(remoteAddress), isOver);
    const last = told.get(address);
    if (last && !isOver(last.atMs)) {
      last.since += 1;
      return;
    }
    logger.warn({ address, refusals: 1 + (last?.since ?? 0), ...facts }, message);
    told.delete(address);
    told.set(address, { atMs: now, since: 0 });
  };
}
