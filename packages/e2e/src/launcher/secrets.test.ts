import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { StartError } from '@latchkey/embedded/process/start-error';
import { startLatchkey } from '@latchkey/launcher/latchkey';
import { createEmptyTestDatabase } from '@latchkey/testkit/postgres/database';
import { withClient } from '@latchkey/testkit/postgres/with-client';
import { afterEach, beforeEach, expect, it, onTestFinished } from 'vitest';
import { createDataDir } from '../instance/launcher-process.ts';

const SECRET = 'a-secret-of-the-tests-of-secrets-and-folders';
let dir: Awaited<ReturnType<typeof createDataDir>>;
beforeEach(async () => {
  dir = await createDataDir();
});
afterEach(() => dir.remove());
const inDir = (...names: string[]) => join(dir.path, ...names);

/** Starts on the folder, and returns the message of the rejection. */
async function rejectedStart(env: NodeJS.ProcessEnv = {}): Promise<string> {
  const starting = startLatchkey({ shape: 'standalone', env: { DATA_DIR: dir.path, PORT: '0', REALTIME_PORT: '0', ...env } });
  const err: unknown = await starting.then(
    (latchkey) => latchkey.stop(),
    (reason: unknown) => reason,
  );
  expect(err).toBeInstanceOf(StartError);
  return (err as StartError).message;
}

it('a start with a database never replaces a lost secrets.json or secretKey', async () => {
  await mkdir(inDir('postgres', 'data'), { recursive: true });
  expect(await rejectedStart()).toBe(
    `${inDir('secrets.json')} is missing, and the database in ${inDir('postgres', 'data')} was written with its secretKey. ` +
      'Restore the file from a backup, or set SECRET_KEY to that key. To start afresh, set DATA_DIR to another folder.',
  );
  expect(await readdir(dir.path)).not.toContain('secrets.json');
  const text = JSON.stringify({ serviceCredential: SECRET });
  await writeFile(inDir('secrets.json'), text);
  expect(await rejectedStart()).toMatch(/secrets\.json holds no secretKey, and the database in /);
  expect(await readFile(inDir('secrets.json'), 'utf8')).toBe(text);
});

it('a start never creates a secretKey for a database of DATABASE_URL that has accounts', async () => {
  const database = await createEmptyTestDatabase();
  onTestFinished(() => database.drop());
  const sql = 'CREATE SCHEMA identity; CREATE TABLE identity.account AS SELECT 1 AS id';
  await withClient(database.url, (client) => client.query(sql));
  const message = await rejectedStart({ DATABASE_URL: database.url });
  expect(message).toMatch(/secrets\.json is missing, and the database of DATABASE_URL was /);
  expect(await readdir(dir.path)).not.toContain('secrets.json');
});

it.each(['', 'null', '{"secretKey": 7}', '{"secretKey": "hidden"}'])(
  'a start names a damaged secrets.json, and repeats no part of it: %s',
  async (text) => {
    await writeFile(inDir('secrets.json'), text);
    const message = await rejectedStart();
    expect(message).toContain(`${inDir('secrets.json')} is damaged`);
    expect(message).toMatch(/Restore (the file|it) from a backup/);
    expect(message).not.toContain('hidden');
    expect(await readFile(inDir('secrets.json'), 'utf8')).toBe(text);
  },
);

it.each([['redis'], ['files', 'objects']])(
  'a start rejects an empty database with the data of an earlier run: %s',
  async (...names) => {
    const found = inDir(...names);
    await mkdir(found, { recursive: true });
    const messageFor = (left: string) =>
      `The database is missing: there is no ${inDir('postgres', 'data')}, but an earlier run left ${left}. ` +
      'Restore the database from a backup, or set DATABASE_URL where it is elsewhere. ' +
      `To start afresh with an empty database, move ${found} away.`;
    expect(await rejectedStart()).toBe(messageFor(found));
    expect(await readdir(dir.path)).not.toContain('secrets.json');
    await writeFile(inDir('secrets.json'), JSON.stringify({ secretKey: SECRET }));
    expect(await rejectedStart()).toBe(messageFor(`${inDir('secrets.json')} and ${found}`));
    expect(await readdir(dir.path)).not.toContain('postgres');
  },
);
