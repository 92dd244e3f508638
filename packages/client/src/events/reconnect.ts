/** After a connection of this length, the next delay is short again. */
export const GOOD_AFTER_MS = 10_000;
const DELAY_MS = 1_000;
const DELAY_MS_MAX = 30_000;
/** Spread of the clients of a node that has died: one node can't open all sockets at once. */
const FIRST_DELAY_MS = 10_000;
/**
 * Browsers can't tell a rejected key from an unreachable service: after this many failures, the
 * client tries rarely.
 */
const FAILURES_MANY = 10;
const RARE_DELAY_MS_MAX = 300_000;

/**
 * Longest delay before the next connection, in milliseconds. The delay is random up to it, so that
 * the clients of a stopped node do not all reconnect in the same moment.
 *
 * @param failures connections that failed in a row before this one
 * @param knowsStatus whether the socket shows the status of a rejected handshake
 */
export function delayMsMax(failures: number, wasOpen: boolean, knowsStatus: boolean): number {
  const limitMs = knowsStatus || failures < FAILURES_MANY ? DELAY_MS_MAX : RARE_DELAY_MS_MAX;
  return Math.min(limitMs, Math.max(wasOpen ? FIRST_DELAY_MS : 0, DELAY_MS * 2 ** failures));
}
