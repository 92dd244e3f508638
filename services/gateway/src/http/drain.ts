import type { Server } from 'node:http';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';

/** How long an open connection may still bring a request once the server stops, in milliseconds. */
const LINGER_MS = 250;

/** Turns of the event loop without a new connection after which none waits. The first may be over before it looks for one. */
const IDLE_TURNS = 3;

/** How often connections that have become idle are closed after that, in milliseconds. */
const IDLE_CHECK_MS = 20;

/**
 * Lets connections linger for a moment when the server is closed. Node cuts at once all that are between two requests, and with them
 * requests that were sent and not read yet: under load, there always are some. Whoever sends one meanwhile is answered, and told by
 * `Connection: close` to send no more. New connections are refused once none is waiting, as the system would reset it.
 */
export function lingerOnClose(app: FastifyInstance): void {
  app.addHook('preClose', async () => {
    const { server } = app;
    const closeIdle = server.closeIdleConnections.bind(server);
    server.closeIdleConnections = () => undefined;
    const lingerUntil = performance.now() + LINGER_MS;
    const sweep = setInterval(() => {
      if (performance.now() >= lingerUntil) closeIdle();
    }, IDLE_CHECK_MS);
    server.once('close', () => clearInterval(sweep));
    await noneWaiting(server);
  });
}

/** Resolves when no connection waits to be accepted, or after a moment. Each turn of the event loop accepts one. */
async function noneWaiting(server: Server): Promise<void> {
  let accepted = 0;
  const count = () => {
    accepted += 1;
  };
  server.on('connection', count);
  const giveUpAt = performance.now() + LINGER_MS;
  for (let idleTurns = 0; idleTurns < IDLE_TURNS && performance.now() < giveUpAt; ) {
    const before = accepted;
    await nextTurn();
    idleTurns = accepted === before ? idleTurns + 1 : 0;
  }
  server.off('connection', count);
}
