import { setTimeout as delay } from 'node:timers/promises';
import { CLOSE } from './close-code.ts';
import type { LiveSocket } from './live-socket.ts';

export const SPREAD_MS_MAX = 5_000;
/** Time that closing one socket takes of the whole, in milliseconds. */
const MS_PER_SOCKET = 1;
const STEP_MS = 20;
const CLOSE_MS_MAX = 2_000;

/**
 * Closes sockets with 1001, spread over time so that clients do not all reconnect together.
 *
 * @param sockets returns the sockets that are open
 */
export async function drain(sockets: () => Iterable<Pick<LiveSocket, 'close' | 'cut'>>): Promise<void> {
  const open = [...sockets()];
  const steps = Math.max(1, Math.ceil(Math.min(SPREAD_MS_MAX, open.length * MS_PER_SOCKET) / STEP_MS));
  const perStep = Math.ceil(open.length / steps);
  for (let i = 0; i < open.length; i += perStep) {
    for (const socket of open.slice(i, i + perStep)) socket.close(CLOSE.goingAway);
    if (i + perStep < open.length) await delay(STEP_MS);
  }
  const deadline = performance.now() + CLOSE_MS_MAX;
  while ([...sockets()].length > 0 && performance.now() < deadline) await delay(STEP_MS);
  for (const socket of sockets()) socket.cut();
}
