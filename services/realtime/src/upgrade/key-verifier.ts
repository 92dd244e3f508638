import { CallQueue } from '@latchkey/kit/concurrency/call-queue';
import type { AppsClient, KeyHolder } from '../event/apps-client.ts';
import { SharedCalls } from '../event/shared-calls.ts';

/** The application of a socket key, at a moment as `performance.now()` counts. */
export interface VerifiedKey {
  readonly holder: KeyHolder;
  readonly verifiedAt: number;
}

export const CALLS_PER_NETWORK = 1_000;
/** A network has a quarter of all calls, so that made-up keys leave room for others. */
const CALLS = { concurrency: 32, concurrencyPerKey: 8, size: 4 * CALLS_PER_NETWORK, sizePerKey: CALLS_PER_NETWORK };

export class KeyVerifier {
  readonly #apps: Pick<AppsClient, 'lookUp'>;
  readonly #shared = new SharedCalls<VerifiedKey>();
  readonly #queue: CallQueue;

  /** @param waitMs longest wait for a call, after which it is not made */
  constructor(apps: Pick<AppsClient, 'lookUp'>, waitMs: number) {
    this.#apps = apps;
    this.#queue = new CallQueue({ ...CALLS, waitMs });
  }

  /** Verifies a key, in one call for concurrent requests. Throws where the queue is full. */
  verify({ key, network, requestId }: Readonly<Record<'key' | 'network' | 'requestId', string>>): Promise<VerifiedKey> {
    // Before the call is shared: a network's full queue must not fail others with the same key.
    this.#queue.check(network);
    return this.#shared.ask(key, () =>
      this.#queue.run(network, async () => {
        const holder = await this.#apps.lookUp(key, requestId);
        return { holder, verifiedAt: performance.now() };
      }),
    );
  }
}
