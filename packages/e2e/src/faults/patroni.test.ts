import { setTimeout as pause } from 'node:timers/promises';
import { hasPatroni, startOwnPatroni } from '@latchkey/testkit/postgres/own-patroni';
import { Client } from 'pg';
import { expect, it, onTestFinished } from 'vitest';
import { signUp, unique } from '../client/caller.ts';
import { startDedicatedInstance } from '../instance/dedicated-instance.ts';
import { findServiceProcesses } from '../instance/running-processes.ts';

const CALLERS = 8;
/** Time of errors besides that of the engine's own switch, in milliseconds. */
const SLACK_MS = 3_000;

/** Longest time between two successes, in milliseconds. */
class Gaps {
  #last = performance.now();
  longest = 0;

  succeed(): void {
    const now = performance.now();
    this.longest = Math.max(this.longest, now - this.#last);
    this.#last = now;
  }
}

/** Writes with new connections to either server, as a client of PostgreSQL alone would. */
async function writeDirectly(url: string, gaps: Gaps, signal: AbortSignal): Promise<void> {
  const [, credentials, hosts = ''] = /\/\/([^@]+)@([^/]+)/.exec(url) ?? [];
  while (!signal.aborted) {
    for (const host of hosts.split(',')) {
      const client = new Client({
        connectionString: `postgres://${credentials}@${host}/postgres`,
        ...{ connectionTimeoutMillis: 500, query_timeout: 1_000 },
      });
      client.on('error', () => undefined);
      try {
        await client.connect();
        await client.query('insert into probe default values');
        gaps.succeed();
      } catch {
        // The other server, or none yet.
      } finally {
        void client.end().catch(() => undefined);
      }
    }
    await pause(50);
  }
}

it.skipIf(!hasPatroni)(
  'Patroni (Debian: patroni, etcd-server, postgresql) fails over, and nothing acknowledged is lost',
  async () => {
    const patroni = await startOwnPatroni();
    const admin = new Client({ connectionString: patroni.url.replace(/@[^/]+/, `@127.0.0.1:${(await patroni.settle()).port}`) });
    await admin.connect();
    await admin.query('create table probe (at timestamptz default now())');
    await admin.end();
    const instance = await startDedicatedInstance({ databaseUrl: patroni.url, env: { APPLICATIONS_LIMIT: '100000' } });
    onTestFinished(() => instance.stop());
    const processes = findServiceProcesses(instance.pid);
    const owners = await Promise.all(Array.from({ length: CALLERS }, () => signUp(instance.api)));
    const acknowledged = owners.map(() => new Set<string>());

    for (const [fault, breakIt] of [
      ['its PostgreSQL is killed', (node: Awaited<ReturnType<typeof patroni.settle>>) => node.killPostgres()],
      ['its machine is lost', (node: Awaited<ReturnType<typeof patroni.settle>>) => node.kill()],
    ] as const) {
      const before = await patroni.settle();
      const ending = new AbortController();
      const [engine, service] = [new Gaps(), new Gaps()];
      const callers = owners.map(async ({ session }, i) => {
        while (!ending.signal.aborted) {
          const name = unique('app-');
          const { status } = await session.post('/api/v1/panel/create-application', { name }, {}, { mayFail: true });
          expect([200, 503]).toContain(status);
          if (status === 200) {
            acknowledged[i]?.add(name);
            service.succeed();
          } else await pause(50);
        }
      });
      const probe = writeDirectly(patroni.url, engine, ending.signal);
      await pause(2_000);
      await breakIt(before);
      await expect.poll(async () => (await patroni.primary())?.name ?? before.name, { timeout: 60_000 }).not.toBe(before.name);
      await pause(5_000);
      ending.abort();
      await Promise.all([...callers, probe]);
      const figures = `${fault}: PostgreSQL ${Math.round(engine.longest)} ms, requests ${Math.round(service.longest)} ms`;
      process.stdout.write(`${instance.shape}, ${figures}\n`);
      expect(service.longest, figures).toBeLessThan(engine.longest + SLACK_MS);
      if (fault === 'its machine is lost') before.start();
    }
    expect(findServiceProcesses(instance.pid)).toEqual(processes);
    for (const [i, { session }] of owners.entries()) {
      const { data } = await session.get('/api/v1/panel/get-applications');
      const names = new Set(data.map(({ name }: { name: string }) => name));
      expect([...(acknowledged[i] ?? [])].filter((name) => !names.has(name))).toEqual([]);
    }
  },
  400_000,
);
