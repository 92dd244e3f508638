import { CallQueue } from '@latchkey/kit/concurrency/call-queue';
import type { AppsClient, KeyHolder } from '../event/apps-client.ts';
import { SharedCalls } from '../event/shared-calls.ts';

/** The application of a socket key, at a moment as `performance.now()` counts. */
export interface VerifiedKey {
  readonly holder: KeyHolder;
  readonly verifiedAt: number;
}

/**
 * Concurrent calls share a request and a statement. A network has a quarter of them, so that
 * made-up keys leave room for others. The backlog of upgrades limits those that wait.
 */
export const CALLS = { concurrency: 512, concurrencyPerKey: 128, size: Infinity, sizePerKey: Infinity, waitMs: Infinity };

/**
 * Returns a function that verifies a key, in one call for concurrent requests. It throws
 * `dependency_unavailable` where that could only begin after the deadline.
 */
export function createKeyVerifier(apps: Pick<AppsClient, 'lookUp'>) {
  const shared = new SharedCalls<VerifiedKey>();
  const queue = new CallQueue(CALLS);
  return ({
    key,
    network,
    requestId,
    deadline,
  }: Readonly<Record<'key' | 'network' | 'requestId', string>> & { deadline: number }): Promise<VerifiedKey> => {
    const lookUp = async () => ({ holder: await apps.lookUp(key, requestId), verifiedAt: performance.now() });
    return shared.ask(key, () => queue.run(network, lookUp, deadline));
  };
}
