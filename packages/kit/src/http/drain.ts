import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';
import { closeAfterAnswer, isAnswering, isTransferring } from './connections.ts';
import { isLingering, lingeringClose } from './lingering-close.ts';

const ACCEPT_MS_MAX = 1_000;
/**
 * Time in which an open connection may still bring a request, once none is waiting, in
 * milliseconds.
 */
const LINGER_MS = 250;
const SWEEP_INTERVAL_MS = 20;
const LAST_WORDS_LIMITS = { totalMs: 1_000, silenceMs: 250 };
/** After this many turns of the event loop without a new connection, none is waiting. */
const IDLE_TURNS = 3;
const UNDER_WAY_MS_MAX = 20_000;

/** Time for requests under way to end, in milliseconds. */
export interface DrainBounds {
  /** For those that carry files. */
  readonly transferMsMax: number;
  /** For the others; 20 s unless set. */
  readonly underWayMsMax?: number;
  /** Sent on connections that are closed between two requests. Nothing unless set. */
  readonly lastWords?: string;
}

/**
 * Lets connections linger for a moment when the server is closed: Node cuts all between two
 * requests, and with them requests that were sent but not read. These are answered with
 * `Connection: close`. Connections that never brought a request, for which Node waits for ever, are
 * closed too.
 */
export function lingerOnClose(app: FastifyInstance, open: ReadonlySet<Duplex>, bounds: DrainBounds): void {
  const { transferMsMax, underWayMsMax = UNDER_WAY_MS_MAX, lastWords } = bounds;
  app.addHook('preClose', async () => {
    const { server } = app;
    server.closeIdleConnections = () => undefined;
    for (const socket of open) closeAfterAnswer(socket);
    await acceptWaiting(server);
    const startedAt = performance.now();
    const sweep = setInterval(() => {
      const elapsedMs = performance.now() - startedAt;
      if (elapsedMs < LINGER_MS) return;
      for (const socket of open) {
        if (isLingering(socket)) continue;
        if (elapsedMs >= (isTransferring(socket) ? transferMsMax : underWayMsMax)) socket.destroy();
        else if (!isAnswering(socket)) closeIdle(socket, lastWords);
      }
    }, SWEEP_INTERVAL_MS);
    server.once('close', () => clearInterval(sweep));
  });
}

/**
 * Goes on serving for a time before a server is closed, with `Connection: close` in every response:
 * clients reconnect, and by then a balancer sends them to another process.
 */
export async function drainConnections(server: Server, open: ReadonlySet<Duplex>, drainMs: number): Promise<void> {
  server.prependListener('request', (_req: IncomingMessage, res: ServerResponse) => {
    res.shouldKeepAlive = false;
  });
  for (const socket of open) closeAfterAnswer(socket);
  await delay(drainMs);
}

/** Closes a connection between two requests. The last words reach a client that is sending one. */
export function closeIdle(socket: Duplex, lastWords?: string): void {
  if (lastWords === undefined || !(socket instanceof Socket)) socket.destroy();
  else lingeringClose(socket, lastWords, LAST_WORDS_LIMITS);
}

/** Accepts the waiting connections, one each turn: the system would reset them. */
async function acceptWaiting(server: Server): Promise<void> {
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
