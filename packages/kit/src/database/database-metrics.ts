import type pg from 'pg';
import { Gauge } from '../metrics/instrument.ts';

const connections = new Gauge({
  name: 'latchkey_database_connections',
  help: "Connections of a service's pool to PostgreSQL, by state: busy or idle.",
  labels: ['schema', 'state'],
});

const connectionsMax = new Gauge({
  name: 'latchkey_database_connections_max',
  help: 'Most connections that the pool may have (DATABASE_POOL_MAX).',
  labels: ['schema'],
});

const waiting = new Gauge({
  name: 'latchkey_database_waiting',
  help: 'Queries that wait for a connection of the pool.',
  labels: ['schema'],
});

/** Has scrapes see how much a pool is used. Returns what ends that. */
export function watchPool(pool: pg.Pool, schema: string): () => void {
  const unwatch = [
    connections.watch(() => [
      [pool.totalCount - pool.idleCount, schema, 'busy'],
      [pool.idleCount, schema, 'idle'],
    ]),
    connectionsMax.watch(() => [[pool.options.max, schema]]),
    waiting.watch(() => [[pool.waitingCount, schema]]),
  ];
  return () => {
    for (const end of unwatch) end();
  };
}
