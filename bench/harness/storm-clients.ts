// Holds a live connection of each application, and reconnects as @latchkey/client does. It reports
// what it has seen once a second, in a separate process.
import { LiveClient } from './live-client.ts';
import { upgradeRequest } from './live-clients.ts';

export interface StormStart {
  readonly port: number;
  readonly socketKeys: readonly string[];
}

export interface StormReport {
  readonly open: number;
  /** Clients that have received the event that they missed. */
  readonly caughtUp: number;
  readonly attempts: number;
  /** Rejections by status; 0 for a connection that was refused or lost. */
  readonly rejections: Readonly<Record<string, number>>;
}

const FIRST_DELAY_MS = 10_000;
const DELAY_MS = 1_000;
const DELAY_MS_MAX = 30_000;
/** Loopback addresses, since one has too few ports for connections that have just ended. */
const ADDRESSES = 8;
/** Clients that connect for the first time, per tick of 10 ms. */
const OPENED_PER_TICK = 10;

const seen = { open: 0, caughtUp: 0, attempts: 0 };
const rejections: Record<string, number> = {};

function open(port: number, socketKey: string, index: number, failures = 0): void {
  const headers = { authorization: `Bearer ${socketKey}`, 'last-event-id': '0' };
  const retry = (retryAfterMs: number, spreadMs: number) =>
    setTimeout(open, retryAfterMs + Math.random() * spreadMs, port, socketKey, index, failures + 1);
  seen.attempts += 1;
  let messages = 0;
  new LiveClient(
    port,
    upgradeRequest('/api/v1/realtime', headers),
    {
      onMessage() {
        messages += 1;
        if (messages === 1) seen.open += 1;
        if (messages === 2) seen.caughtUp += 1;
      },
      onRejected(status, head) {
        rejections[status] = (rejections[status] ?? 0) + 1;
        const seconds = Number(/\r\nretry-after: (\d+)/i.exec(head)?.[1] ?? 0);
        retry(seconds * 1_000, Math.min(DELAY_MS_MAX, DELAY_MS * 2 ** failures));
      },
      onClosed() {
        seen.open -= 1;
        setTimeout(open, Math.random() * FIRST_DELAY_MS, port, socketKey, index, 1);
      },
    },
    `127.0.0.${2 + (index % ADDRESSES)}`,
  );
}

process.once('message', ({ port, socketKeys }: StormStart) => {
  let next = 0;
  const timer = setInterval(() => {
    for (let i = 0; i < OPENED_PER_TICK && next < socketKeys.length; i += 1, next += 1)
      open(port, socketKeys[next] as string, next);
    if (next === socketKeys.length) clearInterval(timer);
  }, 10);
  setInterval(() => process.send?.({ ...seen, rejections } satisfies StormReport), 200);
});
process.on('message', (command) => {
  if (command !== 'reset') return;
  seen.attempts = 0;
  for (const status of Object.keys(rejections)) delete rejections[status];
});
process.on('disconnect', () => process.exit());
