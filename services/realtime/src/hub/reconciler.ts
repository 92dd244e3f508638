import type { Logger } from '@latchkey/kit/log/logger';
import pLimit from 'p-limit';
import type { AppsClient, LiveState } from '../event/apps-client.ts';
import type { EventLog } from '../event/event-log.ts';
import { SharedCalls } from '../event/shared-calls.ts';
import { encodeKeyExpiring } from '../frame/frame.ts';
import { CLOSE } from '../socket/close-code.ts';
import type { Hub } from './hub.ts';

/** Hubs compared with apps, or subscribed to, in one call. */
export const HUBS_PER_CALL = 500;
/** With 20,000 hubs, one call after the other would exceed the interval. */
const CALLS_MAX = 4;
const REPAIRS_MAX = 16;

export interface ReconcilerOptions {
  readonly apps: Pick<AppsClient, 'getLiveStates'>;
  readonly log: Pick<EventLog, 'readForHub'>;
  readonly logger: Logger;
  readonly closeHub: (hub: Hub) => void;
}

/**
 * Compares hubs with the apps service, and repairs them: fetches the events that they missed,
 * closes the sockets of rotated keys and deleted applications, and tells sockets when their key
 * expires.
 */
export class Reconciler {
  readonly #options: ReconcilerOptions;
  readonly #runs = new SharedCalls<void>();
  readonly #pending = new Set<Hub>();
  /** Hubs whose last reconciliation failed; the next periodic one includes them. */
  readonly #failed = new Set<Hub>();
  #isFailing = false;

  constructor(options: ReconcilerOptions) {
    this.#options = options;
  }

  /** Reconciles hubs, in a run that begins after the call. Resolves at its end, never rejects. */
  reconcile(hubs: Iterable<Hub>): Promise<void> {
    for (const hub of hubs) if (!hub.isClosed) this.#pending.add(hub);
    return this.#runs.ask('', () => this.#run());
  }

  forget(hub: Hub): void {
    this.#pending.delete(hub);
    this.#failed.delete(hub);
  }

  async #run(): Promise<void> {
    const { logger } = this.#options;
    let failure: unknown;
    try {
      await pLimit(CALLS_MAX).map(inBatches([...this.#pending], HUBS_PER_CALL), async (batch) => {
        failure = (await this.#compare(batch)) ?? failure;
      });
    } catch (err) {
      failure = err;
    }
    if (failure && !this.#isFailing) logger.warn({ err: failure }, 'reconciliation failed and will be retried');
    if (this.#isFailing && this.#failed.size === 0) logger.info('reconciliation succeeds again');
    this.#isFailing = this.#failed.size > 0;
  }

  /** Returns the error of a hub that could not be repaired; throws where none could be compared. */
  async #compare(batch: readonly Hub[]): Promise<unknown> {
    const hubs = batch.filter((hub) => !hub.isClosed);
    for (const hub of hubs) {
      this.#pending.delete(hub);
      this.#failed.add(hub);
    }
    if (hubs.length === 0) return undefined;
    const startedAt = performance.now();
    const cursors = hubs.map((hub) => hub.cursor);
    const states = await this.#options.apps.getLiveStates(hubs.map(({ applicationId }) => applicationId));
    let failure: unknown;
    const limit = pLimit(REPAIRS_MAX);
    const repairs = hubs.map((hub, i) =>
      limit(async () => {
        try {
          const state = states.get(hub.applicationId);
          const isOther = state && (state.epoch !== hub.epoch || state.lastSequence < (cursors[i] ?? 0));
          if (isOther) await this.#disconnect(hub);
          else await this.#repair(hub, state, startedAt);
          this.#failed.delete(hub);
        } catch (err) {
          failure = err;
        }
      }),
    );
    await Promise.all(repairs);
    return failure;
  }

  /**
   * Disconnects the clients of an application whose log lost events, as when a backup is restored.
   * When they reconnect, the `ready` frame has the current state.
   */
  async #disconnect(hub: Hub): Promise<void> {
    const { logger, closeHub } = this.#options;
    logger.warn(
      { applicationId: hub.applicationId, sequence: hub.cursor },
      'the event log has lost events that clients received',
    );
    closeHub(hub);
    await hub.each((socket) => socket.close(CLOSE.goingAway));
  }

  /** @param state undefined where the application is deleted */
  async #repair(hub: Hub, state: LiveState | undefined, startedAt: number): Promise<void> {
    if (!state || state.lastSequence > hub.cursor) await this.#fetchMissing(hub, state?.lastSequence);
    if (!state) {
      // A socket that was sent the deletion closes itself.
      if (!hub.hasEnded) await hub.each((socket) => socket.close(CLOSE.applicationDeleted));
      return;
    }
    const { previousKey } = state;
    hub.keyFingerprint = state.keyFingerprint;
    let isUncertain = false;
    await hub.each((socket) => {
      if (socket.keyFingerprint === state.keyFingerprint) return;
      if (socket.keyFingerprint === previousKey?.fingerprint)
        return socket.expireKey(previousKey.expiresAt, encodeKeyExpiring(hub.applicationId, hub.epoch, previousKey.expiresAt));
      // The key of a socket opened after the call may be newer than its response, or older.
      if (socket.verifiedAt >= startedAt) isUncertain = true;
      else socket.close(CLOSE.keyRotated);
    });
    if (isUncertain) void this.reconcile([hub]);
  }

  /** Fetches the events after the hub's cursor, up to a sequence or to the end of the log. */
  async #fetchMissing(hub: Hub, lastSequence = Number.POSITIVE_INFINITY): Promise<void> {
    while (hub.cursor < lastSequence && hub.sockets.size > 0) {
      const { applicationId, cursor: afterSequence } = hub;
      const frames = await this.#options.log.readForHub({ applicationId, afterSequence, lastSequence });
      const [first] = frames;
      if (!first) {
        // The log was trimmed.
        if (Number.isFinite(lastSequence)) hub.skipTo(lastSequence);
        return;
      }
      // The log was replaced after the comparison: the next one disconnects the clients.
      if (first.epoch !== hub.epoch) return void this.reconcile([hub]);
      if (first.sequence > hub.cursor + 1) hub.skipTo(first.sequence - 1);
      for (const frame of frames) hub.accept(frame);
    }
  }
}

export function* inBatches<T>(items: readonly T[], size: number): Generator<T[]> {
  for (let i = 0; i < items.length; i += size) yield items.slice(i, i + size);
}
