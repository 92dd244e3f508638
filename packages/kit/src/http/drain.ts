import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';
import { closeAfterAnswer, isAnswering, isTransferring } from './connections.ts';
import { isLingering, lingeringClose } from './lingering-close.ts';

/** How long new connections are accepted at most once the server stops, in milliseconds. */
const ACCEPT_MS_MAX = 1_000;

/** How long an open connection may still bring a request once no new ones are accepted, in milliseconds. */
const LINGER_MS = 250;

/** How long requests under way may take to end. */
export interface DrainBounds {
  /** Those that carry files, in milliseconds. */
  readonly transferMsMax: number;
  /** The others, in milliseconds; 20 s unless set. */
  readonly underWayMsMax?: number;
  /** What clients are told on connections that are closed between two requests. Nothing unless set. */
  readonly lastWords?: string;
}

const UNDER_WAY_MS_MAX = 20_000;

/** How often connections without a request are closed after that, in milliseconds. */
const SWEEP_INTERVAL_MS = 20;

/** How long those who were told are listened to. */
const IDLE_BOUNDS = { totalMs: 1_000, silenceMs: 250 };

/** Turns of the event loop without a new connection after which none waits. The first may be over before it looks for one. */
const IDLE_TURNS = 3;

/**
 * Lets connections linger for a moment when the server is closed. Node cuts at once all that are between two requests, and with them
 * requests that were sent and not read yet: under load, there always are some. Whoever sends one meanwhile is answered, and told by
 * `Connection: close` to send no more. On the other hand, Node waits for ever for connections that never brought a request, which are
 * closed here too. New connections are refused once none is waiting, as the system would reset it.
 *
 * A request that is sent at the very moment at which its connection is closed is lost all the same; {@link drainConnections} leaves fewer of them.
 *
 * @param open the connections of the server
 */
export function lingerOnClose(app: FastifyInstance, open: ReadonlySet<Duplex>, bounds: DrainBounds): void {
  const { transferMsMax, underWayMsMax = UNDER_WAY_MS_MAX, lastWords } = bounds;
  app.addHook('preClose', async () => {
    const { server } = app;
    server.closeIdleConnections = () => undefined;
    for (const socket of open) closeAfterAnswer(socket);
    await noneWaiting(server);
    const startedAt = performance.now();
    const sweep = setInterval(() => {
      const elapsedMs = performance.now() - startedAt;
      if (elapsedMs < LINGER_MS) return;
      for (const socket of open) {
        const answerMsMax = isTransferring(socket) ? transferMsMax : underWayMsMax;
        // What has its last answer is closed by itself.
        if (isLingering(socket)) continue;
        if (elapsedMs >= answerMsMax) socket.destroy();
        else if (!isAnswering(socket)) closeIdle(socket, lastWords);
      }
    }, SWEEP_INTERVAL_MS);
    server.once('close', () => clearInterval(sweep));
  });
}

/**
 * Goes on serving for a time before a server is closed, and tells clients with every answer to send no more on its connection. Whoever uses a connection in that
 * time opens another one, which a balancer that has found out by then gives to another process. Connections that are left were not in use.
 *
 * @param open the connections of the server
 */
export async function drainConnections(server: Server, open: ReadonlySet<Duplex>, drainMs: number): Promise<void> {
  server.prependListener('request', (_req: IncomingMessage, res: ServerResponse) => {
    res.shouldKeepAlive = false;
  });
  for (const socket of open) closeAfterAnswer(socket);
  await delay(drainMs);
}

/** Closes a connection on which no request is under way. What is told goes to whoever sends a request at that very moment, and makes it sure that nobody has read it. */
export function closeIdle(socket: Duplex, lastWords?: string): void {
  if (lastWords === undefined || !(socket instanceof Socket)) socket.destroy();
  else lingeringClose(socket, lastWords, IDLE_BOUNDS);
}

/** Resolves when no connection waits to be accepted, or after a moment. Each turn of the event loop accepts one. */
async function noneWaiting(server: Server): Promise<void> {
  let accepted = 0;
  const count = () => {
    accepted += 1;
  };
  server.on('connection', count);
  const giveUpAt = performance.now() + ACCEPT_MS_MAX;
  for (let idleTurns = 0; idleTurns < IDLE_TURNS && performance.now() < giveUpAt; ) {
    const before = accepted;
    await nextTurn();
    idleTurns = accepted === before ? idleTurns + 1 : 0;
  }
  server.off('connection', count);
}
