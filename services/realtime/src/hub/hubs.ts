import { onceATurn } from '@latchkey/kit/concurrency/once-a-turn';
import type { Logger } from '@latchkey/kit/log/logger';
import type { AppsClient } from '../event/apps-client.ts';
import { EventLog } from '../event/event-log.ts';
import { type Frame, readFrame } from '../frame/frame.ts';
import type { LiveSocket } from '../socket/live-socket.ts';
import { Hub, type HubApplication } from './hub.ts';
import { HUBS_PER_CALL, inBatches, Reconciler } from './reconciler.ts';

export interface HubsOptions {
  readonly apps: AppsClient;
  /** Channels of events, by application. Without them, reconciliation finds the events. */
  readonly channels: {
    /** Resolves once what is published from now on arrives. */
    subscribe(applicationIds: readonly string[]): Promise<void>;
    unsubscribe(applicationId: string): void;
  };
  readonly logger: Logger;
}

/** The last event that a client knows. Without an epoch, it is taken as one of the current. */
export interface LastEvent {
  readonly epoch: string | undefined;
  readonly sequence: number;
}

/** The position of a new socket in the events of its application. */
export interface Start {
  /** True if the client receives all that it missed. */
  readonly resumed: boolean;
  readonly position: number;
  /** The first frames to send, where they were read from the event log. */
  readonly frames: readonly Frame[];
}

/** The hubs of a node: one for each application that has sockets here. */
export class Hubs {
  readonly #channels: HubsOptions['channels'];
  readonly #subscribe: (hub: Hub) => Promise<void>;
  readonly #hubs = new Map<string, Hub>();
  readonly #log: EventLog;
  readonly #reconciler: Reconciler;

  constructor({ apps, channels, logger }: HubsOptions) {
    this.#channels = channels;
    this.#subscribe = onceATurn(HUBS_PER_CALL, (hubs) => channels.subscribe(hubs.map(({ applicationId }) => applicationId)));
    this.#log = new EventLog(apps);
    this.#reconciler = new Reconciler({ apps, log: this.#log, logger, closeHub: (hub) => this.#close(hub) });
  }

  /** Resumes after the last event where all later ones are stored, else at the snapshot. */
  async planStart(
    application: HubApplication,
    lastEvent: LastEvent | undefined,
    { requestId, deadline }: { readonly requestId: string; readonly deadline: number },
  ): Promise<Start> {
    const { applicationId, lastSequence, epoch } = application;
    const atSnapshot = { resumed: false, position: lastSequence, frames: [] };
    if (!lastEvent || lastEvent.sequence > lastSequence || (lastEvent.epoch ?? epoch) !== epoch) return atSnapshot;
    const { sequence: position } = lastEvent;
    const resumed = { resumed: true, position, frames: [] };
    if (position === lastSequence || this.#hubs.get(applicationId)?.frameAfter(position)?.epoch === epoch) return resumed;
    const request = { applicationId, afterSequence: position, lastSequence, requestId, deadline };
    const frames = await this.#log.readForClient(request);
    const [first] = frames;
    return first?.sequence === position + 1 && first.epoch === epoch ? { ...resumed, frames } : atSnapshot;
  }

  /** Adds a socket to its application's hub, which is opened for the first one. */
  join(application: HubApplication, create: (hub: Hub) => LiveSocket): LiveSocket {
    const hub = this.#hubs.get(application.applicationId) ?? this.#open(application);
    const socket = create(hub);
    hub.sockets.add(socket);
    socket.onGone(() => {
      hub.sockets.delete(socket);
      if (hub.sockets.size === 0) this.#close(hub);
    });
    // The hub's key or epoch, or the socket's, may be the older one, and the socket may have missed
    // an event that was broadcast before it joined.
    const { keyFingerprint, epoch, lastSequence } = application;
    if (hub.keyFingerprint !== keyFingerprint || hub.epoch !== epoch || hub.cursor > lastSequence) {
      void this.#reconciler.reconcile([hub]);
    }
    return socket;
  }

  get applicationCount(): number {
    return this.#hubs.size;
  }

  get socketCount(): number {
    let count = 0;
    for (const { sockets } of this.#hubs.values()) count += sockets.size;
    return count;
  }

  all(): Iterable<Hub> {
    return this.#hubs.values();
  }

  *sockets(): Generator<LiveSocket> {
    for (const hub of this.#hubs.values()) yield* hub.sockets;
  }

  /** Broadcasts a published frame; other texts, and frames after a gap, start a reconciliation. */
  receive(applicationId: string, text: string): void {
    const hub = this.#hubs.get(applicationId);
    if (!hub) return;
    const frame = readFrame(applicationId, text);
    if (!frame || !hub.accept(frame)) void this.#reconciler.reconcile([hub]);
  }

  /** Subscribes for all hubs again, and reconciles what they missed. */
  async resubscribe(): Promise<void> {
    for (const batch of inBatches([...this.#hubs.values()], HUBS_PER_CALL)) {
      const open = batch.filter((hub) => !hub.isClosed);
      if (open.length === 0) continue;
      await this.#channels.subscribe(open.map((hub) => hub.applicationId));
      void this.#reconciler.reconcile(open);
    }
  }

  /** Compares all hubs with the event log. Resolves when that is done, or has failed. */
  reconcileAll(): Promise<void> {
    return this.#reconciler.reconcile(this.#hubs.values());
  }

  #open(application: HubApplication): Hub {
    const hub = new Hub(application, this.#log);
    this.#hubs.set(hub.applicationId, hub);
    // Finds what happened between the verification of the key and the subscription.
    this.#subscribe(hub).then(
      () => this.#reconciler.reconcile([hub]),
      () => undefined,
    );
    return hub;
  }

  #close(hub: Hub): void {
    if (hub.isClosed) return;
    hub.isClosed = true;
    this.#hubs.delete(hub.applicationId);
    this.#reconciler.forget(hub);
    this.#channels.unsubscribe(hub.applicationId);
  }
}
