import type { Logger } from '@latchkey/kit/logger';
import type { AppsClient, LiveState } from '../event/apps-client.ts';
import { EventLog, type LogRequest } from '../event/event-log.ts';
import { SharedCalls } from '../event/shared-calls.ts';
import { type Frame, readFrame } from '../frame/frame.ts';
import { CLOSE } from '../socket/close-code.ts';
import type { LiveSocket } from '../socket/live-socket.ts';
import { Hub } from './hub.ts';

/** What tells the hubs of events at once; without it they find out by looking. */
export interface Channels {
  /** Resolves once what is published from now on arrives; rejects when that can't be had now. */
  subscribe(applicationIds: readonly string[]): Promise<void>;
  unsubscribe(applicationId: string): void;
}

/** What the hubs of a node work with. */
export interface HubsOptions {
  readonly apps: AppsClient;
  readonly channels: Channels;
  readonly logger: Logger;
}

/** What a new socket has been found to be. */
export interface Joining {
  readonly applicationId: string;
  readonly lastSequence: number;
  readonly keyFingerprint: string;
}

/** Hubs compared with apps in one call. */
const LOOK_HUBS_MAX = 500;
/** Hubs that are given what they lack at the same time. */
const MENDS_MAX = 16;

/** The hubs of a node: one for each application that it holds sockets of. */
export class Hubs {
  readonly #apps: AppsClient;
  readonly #channels: Channels;
  readonly #logger: Logger;
  readonly #hubs = new Map<string, Hub>();
  readonly #log: EventLog;
  readonly #looks = new SharedCalls<void>();
  /** Hubs that are to be looked at. */
  readonly #doubtful = new Set<Hub>();
  /** Hubs whose last look failed. They are looked at again with all others. */
  readonly #failed = new Set<Hub>();
  #isFailing = false;

  constructor({ apps, channels, logger }: HubsOptions) {
    this.#apps = apps;
    this.#log = new EventLog(apps);
    this.#channels = channels;
    this.#logger = logger;
  }

  /** Reads events of an application from the log for a client that lacks them. */
  readFrames(request: LogRequest): Promise<readonly Frame[]> {
    return this.#log.readForClient(request);
  }

  /** The hub of an application where there is one. */
  find(applicationId: string): Hub | undefined {
    return this.#hubs.get(applicationId);
  }

  /** Adds a socket to its application's hub, which is there from then on. */
  join({ applicationId, lastSequence, keyFingerprint }: Joining, create: (hub: Hub) => LiveSocket): LiveSocket {
    const hub = this.#hubs.get(applicationId) ?? this.#open({ applicationId, lastSequence, keyFingerprint });
    const socket = create(hub);
    hub.sockets.add(socket);
    socket.onGone(() => this.#leave(hub, socket));
    // One of the two is out of date, and what happened in between may have come before the socket did.
    if (hub.keyFingerprint !== keyFingerprint || hub.cursor > lastSequence) this.#lookAt([hub]);
    return socket;
  }

  /** How many there are. */
  get applicationCount(): number {
    return this.#hubs.size;
  }

  get socketCount(): number {
    let count = 0;
    for (const { sockets } of this.#hubs.values()) count += sockets.size;
    return count;
  }

  /** All sockets of the node. */
  *sockets(): Generator<LiveSocket> {
    for (const hub of this.#hubs.values()) yield* hub.sockets;
  }

  /** Takes in what was published for an application: a frame, or anything else for a hint to look. */
  receive(applicationId: string, text: string): void {
    const hub = this.#hubs.get(applicationId);
    if (!hub) return;
    const frame = readFrame(applicationId, text);
    if (!frame || !hub.accept(frame)) this.#lookAt([hub]);
  }

  /** Subscribes to what is published for all hubs, and looks at what was missed until then. */
  async resubscribe(): Promise<void> {
    for (const batch of inBatches([...this.#hubs.keys()])) {
      const ids = batch.filter((id) => this.#hubs.has(id));
      if (ids.length === 0) continue;
      await this.#channels.subscribe(ids);
      this.#lookAt(ids.flatMap((id) => this.#hubs.get(id) ?? []));
    }
  }

  /** Compares all hubs with apps, and gives their sockets what they lack. Resolves when that is done, or has failed. */
  async lookAtAll(): Promise<void> {
    for (const hub of this.#hubs.values()) this.#doubtful.add(hub);
    await this.#look();
  }

  #open({ applicationId, lastSequence, keyFingerprint }: Joining): Hub {
    const readFrames = (afterSequence: number, requestId: string) =>
      this.readFrames({ applicationId, afterSequence, lastSequence: hub.cursor, requestId });
    const hub: Hub = new Hub({ applicationId, cursor: lastSequence, keyFingerprint, readFrames });
    this.#hubs.set(applicationId, hub);
    // What happened after the look-up and before the subscription is found by a look.
    this.#channels.subscribe([applicationId]).then(
      () => this.#lookAt([hub]),
      () => undefined,
    );
    return hub;
  }

  #leave(hub: Hub, socket: LiveSocket): void {
    hub.sockets.delete(socket);
    if (hub.sockets.size === 0 && this.#isHeld(hub)) this.#close(hub);
  }

  #close(hub: Hub): void {
    this.#hubs.delete(hub.applicationId);
    this.#doubtful.delete(hub);
    this.#failed.delete(hub);
    this.#channels.unsubscribe(hub.applicationId);
  }

  #isHeld(hub: Hub): boolean {
    return this.#hubs.get(hub.applicationId) === hub;
  }

  #lookAt(hubs: readonly Hub[]): void {
    for (const hub of hubs) if (this.#isHeld(hub)) this.#doubtful.add(hub);
    void this.#look();
  }

  #look(): Promise<void> {
    return this.#looks.ask('', async () => {
      let failure: unknown;
      try {
        for (const hubs of inBatches([...this.#doubtful])) failure = (await this.#compare(hubs)) ?? failure;
      } catch (err) {
        failure = err;
      }
      if (failure && !this.#isFailing) this.#logger.warn({ err: failure }, 'events can not be looked for');
      if (this.#isFailing && this.#failed.size === 0) this.#logger.info('events are looked for again');
      this.#isFailing = this.#failed.size > 0;
    });
  }

  /** Answers the failure of one that could not be mended, and throws when none could be compared. */
  async #compare(batch: readonly Hub[]): Promise<unknown> {
    const hubs = batch.filter((hub) => this.#isHeld(hub));
    for (const hub of hubs) {
      this.#doubtful.delete(hub);
      this.#failed.add(hub);
    }
    if (hubs.length === 0) return undefined;
    const asked = { at: performance.now(), cursors: new Map(hubs.map((hub) => [hub, hub.cursor])) };
    const states = await this.#apps.getLiveStates(hubs.map(({ applicationId }) => applicationId));
    let failure: unknown;
    await eachOf(hubs, async (hub) => {
      try {
        const state = states.get(hub.applicationId);
        if (state && state.lastSequence < (asked.cursors.get(hub) ?? 0)) await this.#abandon(hub);
        else await this.#mend(hub, state, asked.at);
        this.#failed.delete(hub);
      } catch (err) {
        failure = err;
      }
    });
    return failure;
  }

  /**
   * Sends the clients of a hub away that has taken in what apps knows nothing of: the database has gone back in time, as after a backup was restored. They
   * are told where they stand when they come back.
   */
  async #abandon(hub: Hub): Promise<void> {
    this.#logger.warn({ applicationId: hub.applicationId, sequence: hub.cursor }, 'events are gone that clients have heard of');
    if (this.#isHeld(hub)) this.#close(hub);
    await hub.each((socket) => socket.close(CLOSE.goingAway));
  }

  /** @param state what the application's clients should have heard; undefined when it is gone */
  async #mend(hub: Hub, state: LiveState | undefined, startedAt: number): Promise<void> {
    if (!state || state.lastSequence > hub.cursor) await this.#fetchMissing(hub, state?.lastSequence);
    if (!state) {
      // Where the log had the deletion, each socket is closed once it has been sent that.
      if (!hub.hasEnded) await hub.each((socket) => socket.close(CLOSE.applicationDeleted));
      return;
    }
    hub.keyFingerprint = state.keyFingerprint;
    let isDoubtful = false;
    await hub.each((socket) => {
      if (socket.keyFingerprint === state.keyFingerprint) return;
      // A socket that came after the question may have a newer key than the answer, or an older one.
      if (socket.verifiedAt >= startedAt) isDoubtful = true;
      else socket.close(CLOSE.keyRotated);
    });
    if (isDoubtful) this.#lookAt([hub]);
  }

  /** Takes in what the log has after the hub's cursor, up to a sequence or to its end. */
  async #fetchMissing(hub: Hub, lastSequence = Number.POSITIVE_INFINITY): Promise<void> {
    while (hub.cursor < lastSequence && hub.sockets.size > 0) {
      const { applicationId, cursor: afterSequence } = hub;
      const frames = await this.#log.readForHub({ applicationId, afterSequence, lastSequence });
      const [first] = frames;
      if (!first) {
        // The log was trimmed: what is not held any more can't be waited for.
        if (Number.isFinite(lastSequence)) hub.skipTo(lastSequence);
        return;
      }
      if (first.sequence > hub.cursor + 1) hub.skipTo(first.sequence - 1);
      for (const frame of frames) hub.accept(frame);
    }
  }
}

function* inBatches<T>(items: readonly T[]): Generator<T[]> {
  for (let i = 0; i < items.length; i += LOOK_HUBS_MAX) yield items.slice(i, i + LOOK_HUBS_MAX);
}

/** Calls back for each of the hubs, some at the same time. */
async function eachOf(hubs: readonly Hub[], action: (hub: Hub) => Promise<void>): Promise<void> {
  const left = hubs.values();
  const work = async () => {
    for (const hub of left) await action(hub);
  };
  await Promise.all(Array.from({ length: MENDS_MAX }, work));
}
