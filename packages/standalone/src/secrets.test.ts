import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { StartError } from '@latchkey/embedded/start-error';
import { createEmptyTestDatabase } from '@latchkey/testkit/database';
import { withClient } from '@latchkey/testkit/with-client';
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { startLatchkey } from './latchkey.ts';
import { createDataDir } from './testing/launched.ts';

const SECRET = 'a-secret-of-the-tests-of-secrets-and-folders';
let dir: Awaited<ReturnType<typeof createDataDir>>;
beforeEach(async () => {
  dir = await createDataDir();
});
afterEach(() => dir.remove());

const inDir = (...names: string[]) => join(dir.path, ...names);
const makeDatabase = () => mkdir(inDir('postgres', 'data'), { recursive: true });
const writeSecrets = (text: string) => writeFile(inDir('secrets.json'), text);

describe('a start on a damaged data folder', () => {
  /** The sentence that a start is rejected with. */
  const refusal = async (env: NodeJS.ProcessEnv = {}): Promise<string> => {
    const starting = startLatchkey({ shape: 'standalone', env: { DATA_DIR: dir.path, PORT: '0', REALTIME_PORT: '0', ...env } });
    const err: unknown = await starting.then(
      (latchkey) => latchkey.stop(),
      (reason: unknown) => reason,
    );
    expect(err).toBeInstanceOf(StartError);
    return (err as StartError).message;
  };

  it('never replaces a lost secrets.json beside a database', async () => {
    await makeDatabase();
    expect(await refusal()).toBe(
      `${inDir('secrets.json')} is missing, and the database in ${inDir('postgres', 'data')} was written with its secretKey. ` +
        'Restore the file from a backup, or set SECRET_KEY to that key. To start afresh, set DATA_DIR to another folder.',
    );
    expect(await readdir(dir.path)).not.toContain('secrets.json');
  });

  it('never adds a secretKey to a secrets.json without one beside a database', async () => {
    await makeDatabase();
    const text = JSON.stringify({ serviceCredential: SECRET });
    await writeSecrets(text);
    expect(await refusal()).toMatch(/secrets\.json holds no secretKey, and the database in /);
    expect(await readFile(inDir('secrets.json'), 'utf8')).toBe(text);
  });

  it('never makes a secretKey for a database of DATABASE_URL that has accounts', async () => {
    const database = await createEmptyTestDatabase();
    onTestFinished(() => database.drop());
    await withClient(database.url, async (client) => {
      await client.query('CREATE SCHEMA identity; CREATE TABLE identity.account AS SELECT 1 AS id');
    });
    expect(await refusal({ DATABASE_URL: database.url })).toMatch(
      /secrets\.json is missing, and the database of DATABASE_URL was /,
    );
    expect(await readdir(dir.path)).not.toContain('secrets.json');
  });

  it.each(['', 'null', '{"secretKey": 7}', '{"secretKey": "hidden"}'])(
    'names a damaged secrets.json, and repeats nothing of it: %s',
    async (text) => {
      await writeSecrets(text);
      const message = await refusal();
      expect(message).toContain(`${inDir('secrets.json')} is damaged`);
      expect(message).toMatch(/Restore (the file|it) from a backup/);
      expect(message).not.toContain('hidden');
      expect(await readFile(inDir('secrets.json'), 'utf8')).toBe(text);
    },
  );

  it.each([['redis'], ['files', 'objects']])(
    'refuses an empty database beside the data of an earlier run: %s',
    async (...kept) => {
      await writeSecrets(JSON.stringify({ secretKey: SECRET }));
      await mkdir(inDir(...kept), { recursive: true });
      expect(await refusal()).toBe(
        `The database is missing: there is no ${inDir('postgres', 'data')}, but an earlier run left ${inDir('secrets.json')} and ` +
          `${inDir(...kept)}. Restore the database from a backup, or set DATABASE_URL where it is elsewhere. ` +
          `To start afresh with an empty database, move ${inDir(...kept)} away.`,
      );
      expect(await readdir(dir.path)).not.toContain('postgres');
    },
  );

  it('refuses an empty database beside objects also where secrets.json is lost too', async () => {
    await mkdir(inDir('files', 'objects'), { recursive: true });
    expect(await refusal()).toMatch(/^The database is missing: .* an earlier run left \S+objects\. Restore/);
    expect(await readdir(dir.path)).not.toContain('secrets.json');
  });
});
