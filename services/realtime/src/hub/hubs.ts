import { onceATurn } from '@latchkey/kit/concurrency/once-a-turn';
import type { Logger } from '@latchkey/kit/log/logger';
import type { AppsClient } from '../event/apps-client.ts';
import { createEventLog } from '../event/event-log.ts';
import { readFrame } from '../frame/frame.ts';
import type { LiveSocket } from '../socket/live-socket.ts';
import { Hub, type HubApplication } from './hub.ts';
import { createReconciler, HUBS_PER_CALL, inBatches } from './reconciler.ts';
import { type LastEvent, planStart, type ResumeRequest, type Start } from './resume.ts';

export type Hubs = ReturnType<typeof createHubs>;

/** The hubs of a node: one for each application that has sockets here. */
export function createHubs({
  apps,
  channels,
  logger,
}: {
  readonly apps: AppsClient;
  /** Channels of events, by application. Without them, reconciliation finds the events. */
  readonly channels: {
    /** Resolves once what is published from now on arrives. */
    subscribe(applicationIds: readonly string[]): Promise<void>;
    unsubscribe(applicationId: string): void;
  };
  readonly logger: Logger;
}) {
  const hubs = new Map<string, Hub>();
  const log = createEventLog(apps);
  const { reconcile, reconcileSoon, forget } = createReconciler({ apps, log, logger, closeHub: close });
  const subscribe = onceATurn<Hub>(HUBS_PER_CALL, (opened) =>
    channels.subscribe(opened.map(({ applicationId }) => applicationId)),
  );

  function open(application: HubApplication): Hub {
    const hub = new Hub(application, log);
    hubs.set(hub.applicationId, hub);
    // Finds what happened between the verification of the key and the subscription.
    subscribe(hub).then(
      () => reconcileSoon(hub),
      () => undefined,
    );
    return hub;
  }

  function close(hub: Hub): void {
    if (hub.isClosed) return;
    hub.isClosed = true;
    hubs.delete(hub.applicationId);
    forget(hub);
    channels.unsubscribe(hub.applicationId);
  }

  return {
    planStart: (application: HubApplication, ...of: [LastEvent | undefined, ResumeRequest]): Promise<Start> =>
      planStart({ hub: hubs.get(application.applicationId), log }, application, ...of),

    /** Adds a socket to its application's hub, which is opened for the first one. */
    join(application: HubApplication, create: (hub: Hub) => LiveSocket): LiveSocket {
      const hub = hubs.get(application.applicationId) ?? open(application);
      const socket = create(hub);
      hub.sockets.add(socket);
      socket.onGone(() => {
        hub.sockets.delete(socket);
        if (hub.sockets.size === 0) close(hub);
      });
      // The hub's key or epoch, or the socket's, may be the older one, and the socket may have missed
      // an event that was broadcast before it joined.
      const { keyFingerprint, epoch, lastSequence } = application;
      if (hub.keyFingerprint !== keyFingerprint || hub.epoch !== epoch || hub.cursor > lastSequence) reconcileSoon(hub);
      return socket;
    },

    all: (): Iterable<Hub> => hubs.values(),

    *sockets(): Generator<LiveSocket> {
      for (const hub of hubs.values()) yield* hub.sockets;
    },

    /** Broadcasts a published frame; other texts, and frames after a gap, start a reconciliation. */
    receive(applicationId: string, text: string): void {
      const hub = hubs.get(applicationId);
      if (!hub) return;
      const frame = readFrame(applicationId, text);
      if (!frame || !hub.accept(frame)) reconcileSoon(hub);
    },

    /** Subscribes for all hubs again, and reconciles what they missed. */
    async resubscribe(): Promise<void> {
      for (const batch of inBatches([...hubs.values()], HUBS_PER_CALL)) {
        const opened = batch.filter((hub) => !hub.isClosed);
        if (opened.length === 0) continue;
        await channels.subscribe(opened.map((hub) => hub.applicationId));
        reconcileSoon(...opened);
      }
    },

    /** Compares all hubs with the event log. Rejects at the end if some could not be reconciled. */
    reconcileAll: (): Promise<void> => reconcile(hubs.values()),
  };
}
