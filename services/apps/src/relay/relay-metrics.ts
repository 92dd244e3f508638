import { Gauge, isMeasuring, Probe } from '@latchkey/kit/metrics/instrument';
import type { Kysely } from 'kysely';
import type { AppsDatabase } from '../db/schema.ts';
import { selectBacklog } from './relay.store.ts';

const waitingEvents = new Gauge({
  name: 'latchkey_outbox_waiting_events',
  help: 'Events that are not in the queues of all that want them, counted up to 10,000. Every apps process tells of all of them.',
});

const oldestEvent = new Gauge({
  name: 'latchkey_outbox_oldest_seconds',
  help: 'Age of the oldest of them; 0 when there is none.',
});

/** Has scrapes see what the relay has yet to deliver. Returns what ends that. */
export function watchOutbox(db: Kysely<AppsDatabase>): () => void {
  if (!isMeasuring()) return () => undefined;
  const probe = new Probe({ name: 'outbox', read: () => selectBacklog(db) });
  const unwatch = [
    probe.watch(),
    waitingEvents.watch(() => (probe.value ? [[probe.value.count]] : [])),
    oldestEvent.watch(() => (probe.value ? [[probe.value.oldestSeconds]] : [])),
  ];
  return () => {
    for (const end of unwatch) end();
  };
}
