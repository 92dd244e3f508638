import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { commonErrors, DomainError, fromConnectError } from '@latchkey/kit/errors';
import { clientIp, networkOf, type ProxyTrust } from '@latchkey/kit/http/client-ip';
import { denialHeaders } from '@latchkey/kit/http/denial-headers';
import { endWithEnvelope } from '@latchkey/kit/http/raw-error';
import { requestIdOf } from '@latchkey/kit/http/request-id';
import type { Logger } from '@latchkey/kit/logger';
import type { WebSocket, WebSocketServer } from 'ws';
import { errors } from '../errors.ts';
import type { AppsClient, KeyHolder } from '../event/apps-client.ts';
import { SharedCalls } from '../event/shared-calls.ts';
import { encodeReady } from '../frame/frame.ts';
import type { Hubs } from '../hub/hubs.ts';
import { CLOUDEVENTS_PROTOCOL, REALTIME_PATH } from '../protocol.ts';
import type { Heartbeat } from '../socket/heartbeat.ts';
import { LiveSocket } from '../socket/live-socket.ts';
import type { Places } from './places.ts';
import type { Refusals } from './refusals.ts';
import { type Beginning, planBeginning, readLastEventId } from './resume.ts';
import { offeredProtocols, readSocketKey } from './socket-key.ts';
import { Turns } from './turns.ts';

/** What upgrades are made with. */
export interface UpgradeOptions {
  readonly webSockets: WebSocketServer;
  readonly apps: AppsClient;
  readonly hubs: Hubs;
  readonly heartbeat: Heartbeat;
  readonly places: Places;
  readonly refusals: Refusals;
  readonly trust: ProxyTrust;
  readonly isStopping: () => boolean;
  readonly logger: Logger;
}

/** An upgrade on its way. */
interface Upgrade {
  readonly req: IncomingMessage;
  readonly socket: Socket;
  readonly head: Buffer;
  readonly requestId: string;
  readonly network: string;
  /** Gives back what was taken for it, in any order. */
  readonly releases: Array<() => void>;
}

/** An application that lets a client in, as of a moment. */
interface Admission {
  readonly holder: KeyHolder;
  readonly verifiedAt: number;
}

/** Kinds of failure that are not the client's. */
const NOT_COUNTED: ReadonlySet<string> = new Set(['unavailable', 'rate_limited']);

/** Takes upgrade requests: each becomes a live socket, or gets an answer with the error envelope before the upgrade (decisions 10). */
export class Upgrades {
  readonly #options: UpgradeOptions;
  readonly #lookUps = new SharedCalls<Admission>();
  readonly #turns = new Turns();

  constructor(options: UpgradeOptions) {
    this.#options = options;
    // What the library refuses is a handshake that is none.
    options.webSockets.on('wsClientError', (_, socket, req) => {
      const headers = { 'sec-websocket-version': '13' };
      endWithEnvelope(socket, errors.handshake_invalid(), { requestId: requestIdOf(req), headers });
    });
  }

  /** Takes a request with the connection that it came on, as a listener for `upgrade`. */
  async take(req: IncomingMessage, socket: Socket, head: Buffer): Promise<void> {
    // Node has let go of the connection: an error that nobody listens for would end the process.
    socket.on('error', () => undefined);
    const network = networkOf(clientIp(req, this.#options.trust));
    const upgrade: Upgrade = { req, socket, head, requestId: requestIdOf(req), network, releases: [] };
    try {
      const admission = await this.#admit(upgrade);
      const beginning = await this.#plan(upgrade, admission);
      this.#turns.take(() => this.#complete(upgrade, admission, beginning));
    } catch (err) {
      this.#refuse(upgrade, err);
    }
  }

  async #admit(upgrade: Upgrade): Promise<Admission> {
    const { req, network, requestId, releases } = upgrade;
    const { places, refusals, apps, isStopping } = this.#options;
    if (isStopping()) throw errors.node_stopping({ retryAfterSeconds: '1' });
    if (pathOf(req) !== REALTIME_PATH) throw errors.route_not_found();
    refusals.check(network);
    const key = readSocketKey(req);
    if (key === undefined) throw errors.socket_key_invalid();
    const protocols = offeredProtocols(req);
    if (protocols.length > 0 && !protocols.includes(CLOUDEVENTS_PROTOCOL)) throw errors.protocol_unknown();
    releases.push(places.take(network));
    const admission = await this.#lookUps.ask(key, async () => {
      const holder = await apps.lookUp(key, requestId);
      return { holder, verifiedAt: performance.now() };
    });
    releases.push(places.takeOf(admission.holder.applicationId));
    return admission;
  }

  #plan({ req }: Upgrade, { holder: { applicationId, lastSequence } }: Admission): Promise<Beginning> {
    const { hubs } = this.#options;
    return planBeginning(readLastEventId(req), lastSequence, {
      frameAfter: (sequence) => hubs.find(applicationId)?.frameAfter(sequence),
      readFrames: (after) => hubs.readFrames(applicationId, after),
    });
  }

  #complete(upgrade: Upgrade, admission: Admission, beginning: Beginning): void {
    const { req, socket, head } = upgrade;
    if (this.#options.isStopping()) {
      this.#refuse(upgrade, errors.node_stopping({ retryAfterSeconds: '1' }));
      return;
    }
    // Whatever becomes of the connection from here on, it gives back its places when it is gone.
    if (socket.destroyed) release(upgrade);
    else socket.once('close', () => release(upgrade));
    this.#options.webSockets.handleUpgrade(req, socket, head, (ws) => this.#open(ws, upgrade, admission, beginning));
  }

  #open(ws: WebSocket, upgrade: Upgrade, { holder, verifiedAt }: Admission, beginning: Beginning): void {
    const { hubs, heartbeat, logger } = this.#options;
    const { keyFingerprint, ...snapshot } = holder;
    const { position, resumed, frames } = beginning;
    const { requestId, socket: connection } = upgrade;
    const socket = hubs.join(
      holder,
      (source) => new LiveSocket({ ws, connection, source, keyFingerprint, verifiedAt, position }),
    );
    socket.greet(encodeReady(snapshot, resumed, new Date()));
    socket.start(frames);
    heartbeat.add(socket);
    const { applicationId } = snapshot;
    logger.info({ requestId, applicationId, resumed }, 'socket opened');
    const openedAt = performance.now();
    socket.onGone((code) => {
      const seconds = Math.round((performance.now() - openedAt) / 1_000);
      logger.info({ requestId, applicationId, code, seconds }, 'socket closed');
    });
  }

  #refuse(upgrade: Upgrade, cause: unknown): void {
    const { requestId, network, socket } = upgrade;
    const { refusals, logger } = this.#options;
    release(upgrade);
    const err = toRefusal(cause);
    if (!NOT_COUNTED.has(err.kind)) refusals.count(network);
    const facts = { requestId, status: err.httpStatus, reason: err.reason };
    if (err === cause || err.reason === 'socket_key_invalid') logger.info(facts, 'upgrade refused');
    else logger.warn({ ...facts, err: cause }, 'upgrade refused');
    endWithEnvelope(socket, err, { requestId, headers: headersOf(err) });
  }
}

function pathOf({ url = '' }: IncomingMessage): string {
  return url.split('?', 1)[0] as string;
}

function release({ releases }: Upgrade): void {
  for (const give of releases.splice(0)) give();
}

/** The refusal for a failure: whatever is no rule of ours is somebody's outage. */
function toRefusal(cause: unknown): DomainError {
  const err = fromConnectError(cause);
  if (err?.reason === 'runtime_key_invalid') return errors.socket_key_invalid();
  return cause instanceof DomainError ? cause : commonErrors.dependency_unavailable();
}

function headersOf(err: DomainError): Record<string, string> {
  if (err.kind === 'rate_limited') return denialHeaders(err);
  if (err.kind === 'unavailable') return { 'retry-after': err.metadata.retryAfterSeconds ?? '1' };
  return {};
}
