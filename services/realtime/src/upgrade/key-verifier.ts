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

export class KeyVerifier {
  readonly #apps: Pick<AppsClient, 'lookUp'>;
  readonly #shared = new SharedCalls<VerifiedKey>();
  readonly #queue = new CallQueue(CALLS);

  constructor(apps: Pick<AppsClient, 'lookUp'>) {
    this.#apps = apps;
  }

  /**
   * Verifies a key, in one call for concurrent requests. Throws `dependency_unavailable` where it
   * could only begin after the deadline.
   */
  verify(request: Readonly<Record<'key' | 'network' | 'requestId', string>> & { deadline: number }): Promise<VerifiedKey> {
    const { key, network, requestId, deadline } = request;
    const lookUp = async () => {
      const holder = await this.#apps.lookUp(key, requestId);
      return { holder, verifiedAt: performance.now() };
    };
    return this.#shared.ask(key, () => this.#queue.run(network, lookUp, deadline));
  }
}
