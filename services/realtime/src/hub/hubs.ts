import type { Logger } from '@latchkey/kit/log/logger';
import type { AppsClient } from '../event/apps-client.ts';
import { EventLog, type LogRequest } from '../event/event-log.ts';
import { type Frame, readFrame } from '../frame/frame.ts';
import type { LiveSocket } from '../socket/live-socket.ts';
import { Hub } from './hub.ts';
import { HUBS_PER_CALL, inBatches, Reconciler } from './reconciler.ts';

/** Where events of applications are published. Without it, reconciliation finds them. */
export interface Channels {
  /** Resolves once what is published from now on arrives. */
  subscribe(applicationIds: readonly string[]): Promise<void>;
  unsubscribe(applicationId: string): void;
}

export interface HubsOptions {
  readonly apps: AppsClient;
  readonly channels: Channels;
  readonly logger: Logger;
}

/** The application of a new socket, as it was looked up. */
export interface JoinedApplication {
  readonly applicationId: string;
  readonly lastSequence: number;
  readonly keyFingerprint: string;
}

/** The hubs of a node: one for each application that has sockets here. */
export class Hubs {
  readonly #channels: Channels;
  readonly #hubs = new Map<string, Hub>();
  readonly #log: EventLog;
  readonly #reconciler: Reconciler;

  constructor({ apps, channels, logger }: HubsOptions) {
    this.#channels = channels;
    this.#log = new EventLog(apps);
    this.#reconciler = new Reconciler({ apps, log: this.#log, logger, closeHub: (hub) => this.#close(hub) });
  }

  /** Reads events that a client lacks from the event log. */
  readFrames(request: LogRequest): Promise<readonly Frame[]> {
    return this.#log.readForClient(request);
  }

  find(applicationId: string): Hub | undefined {
    return this.#hubs.get(applicationId);
  }

  /** Adds a socket to its application's hub, which is opened for the first one. */
  join(application: JoinedApplication, create: (hub: Hub) => LiveSocket): LiveSocket {
    const hub = this.#hubs.get(application.applicationId) ?? this.#open(application);
    const socket = create(hub);
    hub.sockets.add(socket);
    socket.onGone(() => {
      hub.sockets.delete(socket);
      if (hub.sockets.size === 0) this.#close(hub);
    });
    // Either may be outdated; an event in between may have been broadcast before the join.
    if (hub.keyFingerprint !== application.keyFingerprint || hub.cursor > application.lastSequence) {
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

  #open({ applicationId, lastSequence, keyFingerprint }: JoinedApplication): Hub {
    const readFrames = (afterSequence: number, requestId: string) =>
      this.readFrames({ applicationId, afterSequence, lastSequence: hub.cursor, requestId });
    const hub: Hub = new Hub({ applicationId, cursor: lastSequence, keyFingerprint, readFrames });
    this.#hubs.set(applicationId, hub);
    // Finds what happened between the look-up and the subscription.
    this.#channels.subscribe([applicationId]).then(
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
