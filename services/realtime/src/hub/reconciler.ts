import { timestampDate } from '@bufbuild/protobuf/wkt';
import type { Logger } from '@latchkey/kit/log/logger';
import type { LiveState } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import pLimit from 'p-limit';
import type { AppsClient } from '../event/apps-client.ts';
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

/**
 * Compares hubs with the apps service, and repairs them: fetches the events that they missed,
 * closes the sockets of rotated keys, after their overlap, and of deleted applications, and tells
 * sockets when their key expires.
 */
export function createReconciler({
  apps,
  log,
  logger,
  closeHub,
}: {
  readonly apps: Pick<AppsClient, 'getLiveStates'>;
  readonly log: Pick<EventLog, 'readForHub'>;
  readonly logger: Logger;
  readonly closeHub: (hub: Hub) => void;
}) {
  const runs = new SharedCalls<void>();
  const pending = new Set<Hub>();

  /**
   * Reconciles hubs, in a run that begins after the call. Rejects at its end, once all others are
   * reconciled, if the run failed for some.
   */
  function reconcile(hubs: Iterable<Hub>): Promise<void> {
    for (const hub of hubs) if (!hub.isClosed) pending.add(hub);
    return runs.ask('', () => forAll(inBatches([...pending], HUBS_PER_CALL), CALLS_MAX, compare));
  }

  /** The same without waiting. The next periodic reconciliation repeats what fails. */
  const reconcileSoon = (...hubs: readonly Hub[]) => void reconcile(hubs).catch(() => undefined);

  async function compare(batch: readonly Hub[]): Promise<void> {
    const hubs = batch.filter((hub) => !hub.isClosed);
    for (const hub of hubs) pending.delete(hub);
    if (hubs.length === 0) return;
    const startedAt = performance.now();
    const cursors = new Map(hubs.map((hub) => [hub, hub.cursor]));
    const states = await apps.getLiveStates(hubs.map(({ applicationId }) => applicationId));
    await forAll(cursors, REPAIRS_MAX, async ([hub, cursor]) => {
      const state = states.get(hub.applicationId);
      const isOther = state && (state.epoch !== hub.epoch || state.lastSequence < cursor);
      if (isOther) await disconnect(hub);
      else await repair(hub, state, startedAt);
    });
  }

  /**
   * Disconnects the clients of an application whose log lost events, as when a backup is restored.
   * When they reconnect, the `ready` frame has the current state.
   */
  async function disconnect(hub: Hub): Promise<void> {
    const { applicationId, cursor: sequence } = hub;
    logger.warn({ applicationId, sequence }, 'the event log has lost events that clients received');
    closeHub(hub);
    await hub.each((socket) => socket.close(CLOSE.goingAway));
  }

  /** @param state undefined where the application is deleted */
  async function repair(hub: Hub, state: LiveState | undefined, startedAt: number): Promise<void> {
    if (!state || state.lastSequence > hub.cursor) await fetchMissing(hub, state && Number(state.lastSequence));
    if (!state) {
      // A socket that was sent the deletion closes itself.
      if (!hub.hasEnded) await hub.each((socket) => socket.close(CLOSE.applicationDeleted));
      return;
    }
    const { socketKeyFingerprint: current, previousSocketKeyFingerprint: previous, previousSocketKeyExpiresAt: expiry } = state;
    hub.keyFingerprint = current;
    let isUncertain = false;
    await hub.each((socket) => {
      if (socket.keyFingerprint === current) return;
      if (expiry && socket.keyFingerprint === previous)
        return socket.announceExpiry(encodeKeyExpiring(hub.applicationId, hub.epoch, timestampDate(expiry)));
      // The key of a socket opened after the call may be newer than its response, or older.
      if (socket.verifiedAt >= startedAt) isUncertain = true;
      else socket.close(CLOSE.keyRotated);
    });
    if (isUncertain) reconcileSoon(hub);
  }

  /** Fetches the events after the hub's cursor, up to a sequence or to the end of the log. */
  async function fetchMissing(hub: Hub, lastSequence = Number.POSITIVE_INFINITY): Promise<void> {
    while (hub.cursor < lastSequence && hub.sockets.size > 0) {
      const { applicationId, cursor: afterSequence } = hub;
      const frames = await log.readForHub({ applicationId, afterSequence, lastSequence });
      const [first] = frames;
      if (!first) {
        // The log was trimmed.
        if (Number.isFinite(lastSequence)) hub.skipTo(lastSequence);
        return;
      }
      // The log was replaced after the comparison: the next one disconnects the clients.
      if (first.epoch !== hub.epoch) return reconcileSoon(hub);
      if (first.sequence > hub.cursor + 1) hub.skipTo(first.sequence - 1);
      for (const frame of frames) hub.accept(frame);
    }
  }

  return { reconcile, reconcileSoon, forget: (hub: Hub) => void pending.delete(hub) };
}

/** Runs a task for each item, some concurrently. Throws the last of their errors after all. */
async function forAll<T>(items: Iterable<T>, concurrency: number, task: (item: T) => Promise<void>): Promise<void> {
  let failure: unknown;
  const run = (item: T) =>
    task(item).catch((err: unknown) => {
      failure = err;
    });
  await pLimit(concurrency).map(items, run);
  if (failure) throw failure;
}

export function* inBatches<T>(items: readonly T[], size: number): Generator<T[]> {
  for (let i = 0; i < items.length; i += size) yield items.slice(i, i + size);
}
