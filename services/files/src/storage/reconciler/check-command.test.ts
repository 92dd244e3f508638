import { truncate } from 'node:fs/promises';
import { createEmptyTestDatabase } from '@latchkey/testkit/database';
import { eventually } from '@latchkey/testkit/eventually';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { runCheckCommand } from '../../testing/command.ts';
import { damageObject, loseObject, pathOf, putOrphan, putUnfinished } from '../../testing/damage.ts';
import type { OwnedRef } from '../../testing/fake-apps.ts';
import { storeFile } from '../../testing/stored-file.ts';
import { SECRET_KEY, startTestFiles, type TestFiles } from '../../testing/test-files.ts';

/** A file with holes only, which takes longer to read than any test. */
const LONG_BYTES = 64 * 1024 ** 3;

let files: TestFiles;
let ref: OwnedRef;
beforeEach(async () => {
  files = await startTestFiles();
  ref = files.createOwned();
});
afterEach(() => files.stop());

const settings = () => ({
  DATABASE_URL: files.url,
  REDIS_URL: 'redis://localhost:1',
  SECRET_KEY,
  OBJECTS_DIR: files.objectsDir,
});
const run = (...args: string[]) => runCheckCommand(settings(), ...args).ended;

describe('the command', { timeout: 60_000 }, () => {
  it('ends with 0 and says so where nothing is wrong', async () => {
    await storeFile(files, ref);
    const { code, stdout, stderr } = await run();
    const { host, pathname, password } = new URL(files.url);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout.split('\n')).toEqual([
      `Comparing the database ${host}${pathname} with the folder ${files.objectsDir}.`,
      expect.stringMatching(/^Checked 1 file, 1 object, 1 application in \d+\.\d s; read 7 bytes\.$/),
      'Nothing is wrong.',
      '',
    ]);
    for (const secret of [password, SECRET_KEY]) expect(stdout).not.toContain(secret);
  });

  it('reports each finding with what is needed to look into it, and ends with 1', async () => {
    const lost = await storeFile(files, ref, { name: 'lost.zip', bytes: Buffer.alloc(1_234) });
    const cut = await storeFile(files, ref, { name: 'cut' });
    const rotten = await storeFile(files, ref, { name: 'rotten' });
    await loseObject(files, ref, lost);
    await damageObject(files, ref, cut, 'c');
    await damageObject(files, ref, rotten, 'c0ntent');
    const [orphan, rest] = [await putOrphan(files), await putUnfinished(files)];
    await files.db.query('update application_usage set file_count = 5');
    const { code, stdout } = await run();
    expect(code).toBe(1);
    const of = `of application ${ref.applicationId}`;
    const lines = stdout.split('\n');
    expect(lines).toContain(`missing object      file ${lost} "lost.zip" (1,234 bytes) ${of}: there is no object`);
    expect(lines).toContain(`damaged object      file ${cut} "cut" (7 bytes) ${of}: the object has 1 byte`);
    expect(stdout).toMatch(
      new RegExp(`file ${rotten} "rotten" \\(7 bytes\\) ${of}: the SHA-256 is [0-9a-f]{64} and not [0-9a-f]{64}\n`),
    );
    expect(lines).toContain(`unknown object      ${orphan}: 5 bytes that belong to no file`);
    expect(lines).toContain(`unfinished upload   ${rest}: what is left of an upload that nobody knows`);
    expect(lines).toContain(
      `wrong usage         application ${ref.applicationId}: 5 files and 3 MiB recorded, 3 files and 3 MiB there`,
    );
    expect(lines).toContain(
      'Found 6 problems: 1 missing object, 2 damaged objects, 1 unknown object, 1 unfinished upload, 1 wrong usage.',
    );
    const command = 'node services/files/src/main.ts check';
    expect(lines).toContain(`Nothing was changed. To mend it: ${command} --mend (${command} --help says how).`);
  });

  it('ends with 0 once all is mended, and says how much it was', async () => {
    await storeFile(files, ref);
    await loseObject(files, ref, await storeFile(files, ref));
    await putOrphan(files);
    const mended = await run('--mend');
    expect(mended.code).toBe(0);
    expect(mended.stdout).toContain('\nMended 2; 0 left.\n');
    expect(await run()).toMatchObject({ code: 0, stdout: expect.stringContaining('Nothing is wrong.') });
  });

  it('ends with 1 where it refuses to mend, and says why', async () => {
    for (let i = 0; i < 11; i += 1) await loseObject(files, ref, await storeFile(files, ref));
    const refused = await run('--mend');
    expect(refused.code).toBe(1);
    expect(refused.stdout).toContain('Nothing was mended: most files have no intact object');
    expect((await run('--mend', '--force')).code).toBe(0);
  });

  it('reads no object with --skip-checksums', async () => {
    await damageObject(files, ref, await storeFile(files, ref), 'c0ntent');
    expect(await run('--skip-checksums')).toMatchObject({ code: 0, stdout: expect.stringContaining('read 0 bytes') });
    expect((await run()).code).toBe(1);
  });

  it('shows how it is used', async () => {
    const { code, stdout } = await runCheckCommand({}, '--help').ended;
    expect(code).toBe(0);
    expect(stdout).toMatch(/^Usage: node services\/files\/src\/main\.ts check \[--mend\]/);
  });

  it('ends with 2 for what it does not know, with all that is wrong with the settings, and without a database', async () => {
    expect(await run('--fix')).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining("Unknown option '--fix'") });
    expect(await run('mend')).toMatchObject({ code: 2, stdout: '' });
    const wrong = await runCheckCommand({ ...settings(), DATABASE_URL: 'mysql://root:hunter2@x', OBJECTS_DIR: '' }).ended;
    expect(wrong.code).toBe(2);
    expect(wrong.stderr).toMatch(/^Wrong settings:\n {2}DATABASE_URL must be a URL that starts with/);
    expect(wrong.stderr).not.toContain('hunter2');
    const nowhere = await runCheckCommand({ ...settings(), DATABASE_URL: 'postgres://a:hunter2@127.0.0.1:1/x' }).ended;
    expect(nowhere).toMatchObject({ code: 2, stderr: 'The check could not be done: connect ECONNREFUSED 127.0.0.1:1.\n' });
    const empty = await createEmptyTestDatabase();
    const strange = await runCheckCommand({ ...settings(), DATABASE_URL: empty.url }).ended;
    expect(strange).toMatchObject({ code: 2, stderr: expect.stringContaining('no tables of the files service') });
    await empty.drop();
  });

  it.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const)('ends at once on %s, with nothing half done', async (signal, code) => {
    const id = await storeFile(files, ref);
    await loseObject(files, ref, id);
    const big = await storeFile(files, ref);
    await truncate(pathOf(files, ref, big), LONG_BYTES);
    const { child, stdout, ended } = runCheckCommand(settings(), '--mend');
    await eventually(() => stdout().includes(`file ${id}`), { timeoutMs: 15_000 });
    child.kill(signal);
    expect(await ended).toMatchObject({ code, stderr: '' });
    expect((await files.db.query('select from file')).rowCount).toBe(2);
  });

  it('tells every few seconds how far it is where the output is no terminal', async () => {
    const big = await storeFile(files, ref);
    await truncate(pathOf(files, ref, big), LONG_BYTES);
    const { stderr } = runCheckCommand(settings());
    await eventually(() => stderr() !== '', { timeoutMs: 15_000 });
    expect(stderr()).toMatch(/^0 of 1 file, \d+\.\d [MG]iB read, 0 objects, 0 problems\n/);
  });
});
