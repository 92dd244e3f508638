import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { commonErrors, DomainError, fromConnectError } from '@latchkey/kit/errors';
import { clientIp, networkOf, type ProxyTrust } from '@latchkey/kit/http/client-ip';
import { denialHeaders } from '@latchkey/kit/http/denial-headers';
import { endWithEnvelope } from '@latchkey/kit/http/raw-error';
import { requestIdOf } from '@latchkey/kit/http/request-id';
import type { Logger } from '@latchkey/kit/logger';
import { inSpan } from '@latchkey/kit/tracing/tracer';
import type { WebSocket, WebSocketServer } from 'ws';
import { errors } from '../errors.ts';
import type { AppsClient } from '../event/apps-client.ts';
import { encodeReady } from '../frame/frame.ts';
import type { Hubs } from '../hub/hubs.ts';
import { countClosed, upgradesRefused } from '../live-metrics.ts';
import { CLOUDEVENTS_PROTOCOL, REALTIME_PATH } from '../protocol.ts';
import type { Heartbeat } from '../socket/heartbeat.ts';
import { LiveSocket } from '../socket/live-socket.ts';
import { beforeDeadline } from './deadline.ts';
import { type Admission, LookUps } from './look-ups.ts';
import type { Places } from './places.ts';
import type { Refusals } from './refusals.ts';
import { checkRequest } from './request.ts';
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
  /** When the client is to have its answer, as `performance.now()` counts. */
  readonly deadline: number;
  /** Gives back what was taken for it, in any order. */
  readonly releases: Array<() => void>;
}

/** Kinds of failure that are not the client's. */
const NOT_COUNTED: ReadonlySet<string> = new Set(['unavailable', 'rate_limited']);

/** How long apps is asked before a client is told that it can't be, in milliseconds. Promised are 5 s in all. */
const ADMISSION_MS_MAX = 4_000;

/** Takes upgrade requests: each becomes a live socket, or gets an answer with the error envelope before the upgrade (decisions 10). */
export class Upgrades {
  readonly #options: UpgradeOptions;
  readonly #lookUps: LookUps;
  readonly #turns = new Turns();
  /** By request, which is all that the library says of one. */
  readonly #underWay = new WeakMap<IncomingMessage, Upgrade>();

  constructor(options: UpgradeOptions) {
    this.#options = options;
    const { webSockets, apps } = options;
    this.#lookUps = new LookUps(apps, ADMISSION_MS_MAX);
    webSockets.on('headers', (headers, req) => headers.push(`X-Request-Id: ${this.#underWay.get(req)?.requestId}`));
    // What the library refuses is a handshake that is none.
    webSockets.on('wsClientError', (_, __, req) => this.#refuse(this.#underWay.get(req) as Upgrade, errors.handshake_invalid()));
  }

  /** Takes a request with the connection that it came on, as a listener for `upgrade`. */
  async take(req: IncomingMessage, socket: Socket, head: Buffer): Promise<void> {
    // Node has let go of the connection: an error that nobody listens for would end the process.
    socket.on('error', () => undefined);
    const network = networkOf(clientIp(req, this.#options.trust));
    const deadline = performance.now() + ADMISSION_MS_MAX;
    const upgrade: Upgrade = { req, socket, head, requestId: requestIdOf(req), network, deadline, releases: [] };
    this.#underWay.set(req, upgrade);
    try {
      const admission = await inSpan({ name: `GET ${REALTIME_PATH}`, kind: 'server', link: traceparentOf(req) }, () =>
        this.#admit(upgrade),
      );
      if (socket.destroyed) return void release(upgrade);
      const beginning = await this.#plan(upgrade, admission);
      this.#turns.take(() => this.#complete(upgrade, admission, beginning));
    } catch (err) {
      this.#refuse(upgrade, err);
    }
  }

  async #admit(upgrade: Upgrade): Promise<Admission> {
    const { req, network, requestId, deadline, releases } = upgrade;
    const { places, refusals, isStopping } = this.#options;
    if (isStopping()) throw errors.node_stopping({ retryAfterSeconds: '1' });
    checkRequest(req);
    refusals.check(network);
    const key = readSocketKey(req);
    if (key === undefined) throw errors.socket_key_invalid();
    const protocols = offeredProtocols(req);
    if (protocols.length > 0 && !protocols.includes(CLOUDEVENTS_PROTOCOL)) throw errors.protocol_unknown();
    releases.push(places.take(network));
    const admission = await beforeDeadline(deadline, this.#lookUps.ask({ key, network, requestId }));
    releases.push(places.takeOf(admission.holder.applicationId));
    return admission;
  }

  #plan({ req, deadline, requestId }: Upgrade, { holder: { applicationId, lastSequence } }: Admission): Promise<Beginning> {
    const { hubs } = this.#options;
    const plan = planBeginning(readLastEventId(req), lastSequence, {
      frameAfter: (sequence) => hubs.find(applicationId)?.frameAfter(sequence),
      readFrames: (afterSequence) => hubs.readFrames({ applicationId, afterSequence, lastSequence, requestId }),
    });
    return beforeDeadline(deadline, plan);
  }

  #complete(upgrade: Upgrade, admission: Admission, beginning: Beginning): void {
    const { req, socket, head, requestId } = upgrade;
    const { webSockets, isStopping, logger } = this.#options;
    if (isStopping()) return void this.#refuse(upgrade, errors.node_stopping({ retryAfterSeconds: '1' }));
    if (socket.destroyed) return void release(upgrade);
    giveBackOnClose(socket, upgrade.releases);
    try {
      webSockets.handleUpgrade(req, socket, head, (ws) => this.#open(ws, upgrade, admission, beginning));
    } catch (err) {
      // A defect costs this client its connection, and nobody else theirs.
      logger.error({ err, requestId }, 'upgrade failed');
      socket.destroy();
    }
  }

  #open(ws: WebSocket, upgrade: Upgrade, { holder, verifiedAt }: Admission, beginning: Beginning): void {
    const { hubs, heartbeat, logger } = this.#options;
    const { keyFingerprint, ...snapshot } = holder;
    const { position, resumed, frames } = beginning;
    const { requestId, socket: connection } = upgrade;
    const socket = hubs.join(
      holder,
      (source) => new LiveSocket({ ws, connection, source, keyFingerprint, verifiedAt, position, requestId }),
    );
    socket.greet(encodeReady(snapshot, resumed, new Date()));
    socket.start(frames);
    heartbeat.add(socket);
    const { applicationId } = snapshot;
    logger.info({ requestId, applicationId, resumed }, 'socket opened');
    const openedAt = performance.now();
    socket.onGone((code) => {
      countClosed(code);
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
    upgradesRefused.add(1, err.reason);
    const facts = { requestId, status: err.httpStatus, reason: err.reason };
    if (err === cause || err.reason === 'socket_key_invalid') logger.info(facts, 'upgrade refused');
    else logger.warn({ ...facts, err: cause }, 'upgrade refused');
    endWithEnvelope(socket, err, { requestId, headers: headersOf(err) });
  }
}

/** Of the client's own trace, which is linked to and no more. */
function traceparentOf({ headers: { traceparent } }: IncomingMessage): string | undefined {
  return typeof traceparent === 'string' ? traceparent : undefined;
}

function release({ releases }: Pick<Upgrade, 'releases'>): void {
  for (const give of releases.splice(0)) give();
}

/** Whatever becomes of a connection, its places are given back when it is gone. By itself, as what it refers to lives as long as the connection. */
function giveBackOnClose(socket: Socket, releases: Upgrade['releases']): void {
  socket.once('close', () => release({ releases }));
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
  if (err.kind === 'method_not_allowed') return { allow: 'GET' };
  return err.kind === 'invalid' ? { 'sec-websocket-version': '13' } : {};
}
