import { CallQueue } from '@latchkey/kit/call-queue';
import type { AppsClient, KeyHolder } from '../event/apps-client.ts';
import { SharedCalls } from '../event/shared-calls.ts';

/** An application that lets a client in, as of a moment. */
export interface Admission {
  readonly holder: KeyHolder;
  readonly verifiedAt: number;
}

/** A client that asks to be let in. */
export interface Applicant {
  readonly key: string;
  readonly network: string;
  readonly requestId: string;
}

/** A network may have a quarter, so that one with made-up keys leaves room for others. */
const UNDER_WAY = { underWay: 32, underWayOfKey: 8 };
export const LOOK_UPS_MAX = 4_000;
export const LOOK_UPS_PER_NETWORK = 1_000;

/** Finds out whom the socket keys of clients belong to. */
export class LookUps {
  readonly #apps: Pick<AppsClient, 'lookUp'>;
  readonly #shared = new SharedCalls<Admission>();
  readonly #queue: CallQueue;

  /** @param waitMs how long clients wait; nobody is looked up later */
  constructor(apps: Pick<AppsClient, 'lookUp'>, waitMs: number) {
    this.#apps = apps;
    this.#queue = new CallQueue({ ...UNDER_WAY, size: LOOK_UPS_MAX, sizeOfKey: LOOK_UPS_PER_NETWORK, waitMs });
  }

  /** Looks a key up; those who present the same at the same time share a call. Throws `dependency_unavailable` where too many wait already. */
  ask({ key, network, requestId }: Applicant): Promise<Admission> {
    // Before the call is shared: one network's lack of room is not that of others with the same key.
    this.#queue.check(network);
    return this.#shared.ask(key, () =>
      this.#queue.run(network, async () => {
        const holder = await this.#apps.lookUp(key, requestId);
        return { holder, verifiedAt: performance.now() };
      }),
    );
  }
}
