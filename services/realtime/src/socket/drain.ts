import { setTimeout as delay } from 'node:timers/promises';
import { CLOSE } from './close-code.ts';
import type { LiveSocket } from './live-socket.ts';

/** The closing of one socket takes up so much of the time that there is, in milliseconds. */
const MS_PER_SOCKET = 1;
const STEP_MS = 20;
/** How long clients have to answer once all are told, in milliseconds. */
const ANSWER_MS_MAX = 2_000;
const CHECK_MS = 20;

/**
 * Closes sockets with 1001, spread over time so that their clients do not all come at once to where they go next, and cuts off those that do not answer.
 *
 * @param sockets all that are open, each time it is called
 * @param spreadMs longest time to spread the closing over
 */
export async function drain(sockets: () => Iterable<LiveSocket>, spreadMs: number): Promise<void> {
  const open = [...sockets()];
  const steps = Math.max(1, Math.ceil(Math.min(spreadMs, open.length * MS_PER_SOCKET) / STEP_MS));
  const perStep = Math.ceil(open.length / steps);
  for (let i = 0; i < open.length; i += perStep) {
    for (const socket of open.slice(i, i + perStep)) socket.close(CLOSE.goingAway);
    if (i + perStep < open.length) await delay(STEP_MS);
  }
  const deadline = performance.now() + ANSWER_MS_MAX;
  while (hasAny(sockets()) && performance.now() < deadline) await delay(CHECK_MS);
  for (const socket of sockets()) socket.cut();
}

function hasAny(items: Iterable<unknown>): boolean {
  for (const _ of items) return true;
  return false;
}
