import { Counter, Gauge, Histogram } from '@latchkey/kit/telemetry/metrics';
import { CLOSE } from './socket/close-code.ts';

/** In seconds; 2 s is the limit that docs/events.md promises. */
const LAG_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 60];

const openSockets = new Gauge({ name: 'latchkey_sockets_open', help: 'Sockets that are open here.' });

const socketsMax = new Gauge({
  name: 'latchkey_sockets_max',
  help: 'Limit of open sockets here (SOCKETS_MAX).',
});

const socketApplications = new Gauge({
  name: 'latchkey_socket_applications',
  help: 'Applications with open sockets here.',
});

/** Reports the open sockets to scrapes. Returns a function that ends it. */
export function watchSockets(hubs: { sockets(): Iterable<unknown>; all(): Iterable<unknown> }, max: number): () => void {
  const unwatch = [
    openSockets.watch(() => [[[...hubs.sockets()].length]]),
    socketsMax.watch(() => [[max]]),
    socketApplications.watch(() => [[[...hubs.all()].length]]),
  ];
  return () => {
    for (const end of unwatch) end();
  };
}

export const upgradesRejected = new Counter({
  name: 'latchkey_upgrades_rejected_total',
  help: 'Upgrades that were rejected, by reason.',
  labels: ['reason'],
});

const socketsClosed = new Counter({
  name: 'latchkey_sockets_closed_total',
  help: 'Sockets that were closed, by code; other for codes that only the client knows.',
  labels: ['code'],
});

export const eventsSent = new Counter({
  name: 'latchkey_events_sent_total',
  help: 'Events that were sent to sockets, counted for each socket.',
});

export const deliveryLag = new Histogram({
  name: 'latchkey_event_delivery_lag_seconds',
  help: 'Time from the change of an application until its event was handed to the last of the sockets here.',
  buckets: LAG_BUCKETS,
});

/** Our codes, and those of clients that leave, vanish (1006) or send too large a frame (1009). */
const KNOWN_CODES = new Set([1000, 1001, 1005, 1006, 1009, ...Object.values(CLOSE).map(({ code }) => code)]);

/** Counts a closed socket. Clients choose their codes freely, so unknown ones share a label. */
export function countClosed(code: number): void {
  socketsClosed.add(1, KNOWN_CODES.has(code) ? String(code) : 'other');
}
