import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { REALTIME_PATH } from '@latchkey/contract/cloud-event';
import { orRejectAfter } from '@latchkey/kit/concurrency/within';
import { commonErrors, DomainError, fromConnectError } from '@latchkey/kit/errors/errors';
import { clientIp, networkOf, type ProxyTrust } from '@latchkey/kit/http/client-ip';
import { rateLimitHeaders } from '@latchkey/kit/http/rate-limit-headers';
import { endWithEnvelope } from '@latchkey/kit/http/raw-error';
import { requestIdOf } from '@latchkey/kit/http/request';
import type { Logger } from '@latchkey/kit/log/logger';
import { DEADLINES_MS } from '@latchkey/kit/rpc/deadlines';
import { inSpan } from '@latchkey/kit/telemetry/tracing';
import pLimit from 'p-limit';
import type { WebSocket, WebSocketServer } from 'ws';
import { errors } from '../errors.ts';
import type { AppsClient } from '../event/apps-client.ts';
import { encodeReady } from '../frame/frame.ts';
import type { Hubs } from '../hub/hubs.ts';
import type { Start } from '../hub/resume.ts';
import { countClosed, upgradesRejected } from '../live-metrics.ts';
import { ignoreError, LiveSocket } from '../socket/live-socket.ts';
import { createUpgradeBacklog } from './backlog.ts';
import type { ConnectionQuota, RejectionLimit } from './connection-quota.ts';
import { createKeyVerifier, type VerifiedKey } from './key-verifier.ts';
import { checkRequest, readLastEvent, readSocketKey } from './upgrade-request.ts';

export interface UpgradeOptions {
  readonly webSockets: WebSocketServer;
  readonly apps: AppsClient;
  readonly hubs: Hubs;
  readonly quota: ConnectionQuota;
  readonly rejections: RejectionLimit;
  readonly trust: ProxyTrust;
  readonly isStopping: () => boolean;
  readonly logger: Logger;
}

interface Upgrade {
  readonly req: IncomingMessage;
  readonly socket: Socket;
  readonly head: Buffer;
  readonly requestId: string;
  readonly network: string;
  /** Deadline of the response, as `performance.now()` counts. */
  readonly deadline: number;
  readonly releases: Array<() => void>;
}

/** Failures that do not count against the client. */
const NOT_COUNTED: ReadonlySet<string> = new Set(['unavailable', 'rate_limited']);

/** Returns a handler of upgrade requests: each becomes a live socket, or is rejected. */
export function createUpgradeHandler(options: UpgradeOptions) {
  const { webSockets, apps, hubs, quota, rejections, trust, isStopping, logger } = options;
  const verifyKey = createKeyVerifier(apps);
  const backlog = createUpgradeBacklog();
  /** One upgrade per turn of the event loop, so that thousands do not block it. */
  const turn = pLimit(1);
  /** By request, the only part of an upgrade that the events of the library carry. */
  const upgrades = new WeakMap<IncomingMessage, Upgrade>();
  webSockets.on('headers', (headers, req) => headers.push(`X-Request-Id: ${upgrades.get(req)?.requestId}`));
  webSockets.on('wsClientError', (_, __, req) => reject(upgrades.get(req) as Upgrade, errors.handshake_invalid()));

  async function verify({ req, network, requestId, deadline, releases }: Upgrade): Promise<VerifiedKey> {
    checkRequest(req);
    rejections.check(network);
    const key = readSocketKey(req);
    releases.push(quota.acquire(network));
    const verified = await beforeDeadline(deadline, verifyKey({ key, network, requestId, deadline }));
    releases.push(quota.acquireFor(verified.holder.applicationId));
    return verified;
  }

  function complete(upgrade: Upgrade, verified: VerifiedKey, start: Start): void {
    const { req, socket, head, requestId, releases } = upgrade;
    if (isStopping()) throw errors.node_stopping();
    if (socket.destroyed) return void release(releases);
    socket.once('close', release.bind(undefined, releases));
    try {
      webSockets.handleUpgrade(req, socket, head, (ws) => open(ws, upgrade, verified, start));
    } catch (err) {
      logger.error({ err, requestId }, 'upgrade failed');
      socket.destroy();
    }
  }

  function open(ws: WebSocket, { requestId, socket: connection }: Upgrade, { holder, verifiedAt }: VerifiedKey, start: Start) {
    const { keyFingerprint, accountId, ...snapshot } = holder;
    const { position, resumed, frames } = start;
    const { applicationId, epoch } = holder;
    const socketOptions = { ws, connection, keyFingerprint, epoch, verifiedAt, position, requestId };
    const socket = hubs.join(holder, (source) => new LiveSocket({ ...socketOptions, source }));
    socket.greet(encodeReady(snapshot, resumed));
    socket.start(frames);
    logger.info({ requestId, applicationId, resumed }, 'socket opened');
    const openedAt = performance.now();
    socket.onGone((code) => {
      countClosed(code);
      const seconds = Math.round((performance.now() - openedAt) / 1_000);
      logger.info({ requestId, applicationId, code, seconds }, 'socket closed');
    });
  }

  function reject({ requestId, network, socket, releases }: Upgrade, cause: unknown): void {
    release(releases);
    const err = toRejection(cause);
    if (!NOT_COUNTED.has(err.kind)) rejections.count(network);
    upgradesRejected.add(1, err.reason);
    const facts = { requestId, status: err.httpStatus, reason: err.reason };
    if (err === cause || err.reason === 'socket_key_invalid') logger.info(facts, 'upgrade rejected');
    else logger.warn({ ...facts, err: cause }, 'upgrade rejected');
    endWithEnvelope(socket, err, { requestId, headers: headersOf(err) });
  }

  return async (req: IncomingMessage, socket: Socket, head: Buffer): Promise<void> => {
    socket.on('error', ignoreError);
    const network = networkOf(clientIp(req, trust));
    const deadline = performance.now() + DEADLINES_MS.queue;
    const upgrade: Upgrade = { req, socket, head, requestId: requestIdOf(req), network, deadline, releases: [] };
    upgrades.set(req, upgrade);
    const { traceparent: link } = req.headers;
    const span = { name: `GET ${REALTIME_PATH}`, kind: 'server', link: typeof link === 'string' ? link : undefined } as const;
    let leave = () => {};
    try {
      if (isStopping()) throw errors.node_stopping();
      leave = backlog.enter(network);
      const verified = await inSpan(span, () => verify(upgrade));
      checkDeadline(upgrade);
      const planned = hubs.planStart(verified.holder, readLastEvent(req), upgrade);
      const start = await beforeDeadline(deadline, planned);
      await turn(() => nextTurn());
      checkDeadline(upgrade);
      complete(upgrade, verified, start);
    } catch (err) {
      reject(upgrade, err);
    } finally {
      leave();
    }
  };
}

/** Throws `dependency_unavailable` after the deadline. */
function checkDeadline({ deadline }: Upgrade): void {
  if (performance.now() >= deadline) throw commonErrors.dependency_unavailable();
}

function beforeDeadline<T>(deadline: number, promise: Promise<T>): Promise<T> {
  return orRejectAfter(deadline - performance.now(), promise, commonErrors.dependency_unavailable);
}

function release(releases: Upgrade['releases']): void {
  for (const give of releases.splice(0)) give();
}

function toRejection(cause: unknown): DomainError {
  const err = fromConnectError(cause);
  if (err?.reason === 'runtime_key_invalid') return errors.socket_key_invalid();
  return cause instanceof DomainError ? cause : commonErrors.dependency_unavailable();
}

function headersOf(err: DomainError): Record<string, string> {
  if (err.kind === 'rate_limited') return rateLimitHeaders(err);
  if (err.kind === 'unavailable') return { 'retry-after': err.metadata.retryAfterSeconds ?? '1' };
  // Required by RFC 9110, 11.6.1.
  if (err.kind === 'unauthenticated') return { 'www-authenticate': 'Bearer realm="latchkey"' };
  if (err.kind === 'method_not_allowed') return { allow: 'GET' };
  return err.kind === 'invalid' ? { 'sec-websocket-version': '13' } : {};
}
