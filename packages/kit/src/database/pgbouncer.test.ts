import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eventually } from '@latchkey/testkit/eventually';
import { findFreePort } from '@latchkey/testkit/network/free-port';
import { openEmptyDatabase } from '@latchkey/testkit/postgres/database';
import { describe, expect, it, onTestFinished } from 'vitest';
import { openDatabase } from '../testing/databases.ts';
import { checkDatabaseUrl } from './database-wait.ts';
import { migrate } from './migrate.ts';

const isInstalled = spawnSync('pgbouncer', ['--version']).status === 0;

/** PgBouncer with the settings of docs/deployment.md and this mode; all others are its defaults. */
async function startPgBouncer(mode: 'session' | 'transaction'): Promise<string> {
  const { url, name } = await openEmptyDatabase();
  const server = new URL(url);
  const port = await findFreePort();
  const dir = await mkdtemp(join(tmpdir(), 'latchkey-pgbouncer-'));
  await chmod(dir, 0o755);
  await writeFile(join(dir, 'users.txt'), `"${server.username}" "${server.password}"\n`);
  const database = `${name} = host=${server.hostname} port=${server.port} dbname=${name}`;
  const settings = [`listen_addr = 127.0.0.1`, `listen_port = ${port}`, `pool_mode = ${mode}`, 'auth_type = scram-sha-256'];
  const file = ['[databases]', database, '[pgbouncer]', ...settings, `auth_file = ${dir}/users.txt`, 'unix_socket_dir ='];
  await writeFile(join(dir, 'pgbouncer.ini'), file.join('\n'));
  const user = process.getuid?.() === 0 ? ['-u', 'nobody'] : [];
  const pgBouncer = spawn('pgbouncer', ['-q', ...user, join(dir, 'pgbouncer.ini')], { stdio: 'ignore' });
  const exited = once(pgBouncer, 'exit');
  onTestFinished(async () => {
    pgBouncer.kill('SIGKILL');
    await exited;
    await rm(dir, { recursive: true });
  });
  return Object.assign(new URL(url), { host: `127.0.0.1:${port}` }).href;
}

describe.skipIf(!isInstalled)('PgBouncer (Debian: pgbouncer)', () => {
  it('in session mode serves migrations and queries with the settings of a session', async () => {
    const url = await startPgBouncer('session');
    await eventually(() => checkDatabaseUrl(url));
    await migrate(url, 'shop', { '2026-01-01-empty': { up: async () => undefined } });
    const { pool } = openDatabase(url, { schema: 'shop' });
    const text = `select current_setting('search_path') as path, current_setting('statement_timeout') as timeout`;
    const answers = await Promise.all([0, 1, 2, 3].map(() => pool.query({ name: 'settings', text })));
    expect(answers.flatMap(({ rows }) => rows)).toEqual(Array(4).fill({ path: 'shop', timeout: '2250ms' }));
  });

  it('in transaction mode is rejected at start', async () => {
    const url = await startPgBouncer('transaction');
    await eventually(() => expect(checkDatabaseUrl(url)).rejects.toThrow(/pool_mode=session/));
  });
});
