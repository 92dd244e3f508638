import { setTimeout as delay } from 'node:timers/promises';
import { CLOSE } from './close-code.ts';
import type { LiveSocket } from './live-socket.ts';

/** Time that closing one socket takes of the whole, in milliseconds. */
const MS_PER_SOCKET = 1;
const STEP_MS = 20;
/** Time for clients to answer the close frame. */
const CLOSE_MS_MAX = 2_000;

/**
 * Closes sockets with 1001, spread over time so that clients do not all reconnect together.
 *
 * @param sockets all open sockets, each time it is called
 * @param spreadMs longest time to spread them over
 */
export async function drain(sockets: () => Iterable<LiveSocket>, spreadMs: number): Promise<void> {
  const open = [...sockets()];
  const steps = Math.max(1, Math.ceil(Math.min(spreadMs, open.length * MS_PER_SOCKET) / STEP_MS));
  const perStep = Math.ceil(open.length / steps);
  for (let i = 0; i < open.length; i += perStep) {
    for (const socket of open.slice(i, i + perStep)) socket.close(CLOSE.goingAway);
    if (i + perStep < open.length) await delay(STEP_MS);
  }
  const deadline = performance.now() + CLOSE_MS_MAX;
  while ([...sockets()].length > 0 && performance.now() < deadline) await delay(STEP_MS);
  for (const socket of sockets()) socket.cut();
}
