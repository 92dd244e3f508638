import { Counter, Gauge, Histogram } from '@latchkey/kit/metrics/instrument';
import { CLOSE } from './socket/close-code.ts';

/** Bounds in seconds; promised are 2 s, and 0.5 s for the last of 5,000 clients. */
const LAG_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 60];

export const openSockets = new Gauge({ name: 'latchkey_sockets_open', help: 'Sockets that are open here.' });

export const socketsMax = new Gauge({
  name: 'latchkey_sockets_max',
  help: 'Sockets beyond which clients are refused here (SOCKETS_MAX).',
});

export const socketApplications = new Gauge({
  name: 'latchkey_socket_applications',
  help: 'Applications that sockets are open of here.',
});

export const upgradesRefused = new Counter({
  name: 'latchkey_upgrades_refused_total',
  help: 'Sockets that were refused before they were opened, by reason.',
  labels: ['reason'],
});

const socketsClosed = new Counter({
  name: 'latchkey_sockets_closed_total',
  help: 'Sockets that were closed, by code; other for those of clients that are not of the protocol.',
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

/** Codes of ours, and those of a client that leaves (1000, 1001), says nothing (1005), vanishes (1006) or sends too large a frame (1009). */
const KNOWN_CODES = new Set([1000, 1001, 1005, 1006, 1009, ...Object.values(CLOSE).map(({ code }) => code)]);

/** Counts a socket that is gone. A client may close with whatever code it likes. */
export function countClosed(code: number): void {
  socketsClosed.add(1, KNOWN_CODES.has(code) ? String(code) : 'other');
}
