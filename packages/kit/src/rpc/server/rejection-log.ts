import { canonicalIp } from '../../http/client-ip.ts';
import type { Logger } from '../../log/logger.ts';

/** Logs a rejection of a peer, by the address of its socket. */
export type LogRejection = (remoteAddress: string | undefined, facts?: Readonly<Record<string, string>>) => void;

const INTERVAL_MS = 60_000;

/** Addresses logged in one interval, so that attackers cannot fill the log. */
const ADDRESSES_MAX = 100;

/** Logs each rejected address once a minute. */
export function createRejectionLog(logger: Logger, message: string): LogRejection {
  const logged = new Set<string>();
  let startedAt = Number.NEGATIVE_INFINITY;
  return (remoteAddress, facts) => {
    if (performance.now() - startedAt >= INTERVAL_MS) {
      logged.clear();
      startedAt = performance.now();
    }
    const address = canonicalIp(remoteAddress);
    if (logged.has(address) || logged.size >= ADDRESSES_MAX) return;
    logged.add(address);
    logger.warn({ address, ...facts }, message);
  };
}
