import { truncate } from 'node:fs/promises';
import { createEmptyTestDatabase } from '@latchkey/testkit/database';
import { eventually } from '@latchkey/testkit/eventually';
import { beforeEach, describe, expect, it } from 'vitest';
import { runMain } from '../../testing/command.ts';
import { damageObject, loseObject, pathOf, putOrphan, putUnfinished } from '../../testing/damage.ts';
import type { OwnedRef } from '../../testing/fake-apps.ts';
import { storeFile } from '../../testing/stored-file.ts';
import { SECRET_KEY, startTestFiles, type TestFiles } from '../../testing/test-files.ts';
import { createCounts } from './finding.ts';
import { startProgress } from './progress.ts';

let files: TestFiles;
let ref: OwnedRef;
beforeEach(async () => {
  files = await startTestFiles();
  ref = files.createOwned();
  return () => files.stop();
});

const settings = () => {
  return { DATABASE_URL: files.url, REDIS_URL: 'redis://localhost:1', SECRET_KEY, OBJECTS_DIR: files.objectsDir };
};
const run = (...args: string[]) => runMain(settings(), 'check', ...args).ended;
const runWith = (env: Record<string, string>) => runMain({ ...settings(), ...env }, 'check').ended;

describe('the command', { timeout: 60_000 }, () => {
  it('reports each finding, ends with 1, and after --mend with 0', async () => {
    const lost = await storeFile(files, ref, { name: 'lost.zip', bytes: Buffer.alloc(1_234) });
    const [cut, rotten] = [await storeFile(files, ref, { name: 'cut' }), await storeFile(files, ref, { name: 'rotten' })];
    await loseObject(files, ref, lost);
    await damageObject(files, ref, cut, 'c');
    await damageObject(files, ref, rotten, 'c0ntent');
    const [orphan, rest] = [await putOrphan(files), await putUnfinished(files)];
    await files.db.query('update application_usage set file_count = 5');
    const { code, stdout } = await run();
    const { host, pathname } = new URL(files.url);
    const of = `of application ${ref.applicationId}`;
    const command = 'node services/files/src/main.ts check';
    const kinds = '1 missing object, 2 damaged objects, 1 unknown object, 1 unfinished upload, 1 wrong usage';
    const expected = [
      `Comparing the database ${host}${pathname} with the folder ${files.objectsDir}.`,
      `missing object      file ${lost} "lost.zip" (1,234 bytes) ${of}: there is no object`,
      `damaged object      file ${cut} "cut" (7 bytes) ${of}: the object has 1 byte`,
      expect.stringMatching(new RegExp(`file ${rotten} .* the SHA-256 is [0-9a-f]{64} and not [0-9a-f]{64}$`)),
      `unknown object      ${orphan}: 5 bytes that belong to no file`,
      `unfinished upload   ${rest}: what is left of an upload that nobody knows`,
      `wrong usage         application ${ref.applicationId}: 5 files and 3 MiB recorded, 3 files and 3 MiB there`,
      expect.stringMatching(/^Checked 3 files, 3 objects, 1 application in \d+\.\d s; read 8 bytes\.$/),
      `Found 6 problems: ${kinds}.`,
      `Nothing was changed. To mend it: ${command} --mend (${command} --help says how).`,
      '',
    ];
    expect([code, stdout.split('\n').toSorted()]).toEqual([1, expect.arrayContaining(expected)]);
    expect(stdout.split('\n')).toHaveLength(expected.length);
    expect(await run('--mend')).toMatchObject({ code: 0, stdout: expect.stringContaining('\nMended 6; 0 left.\n') });
    const { code: after, stdout: text, stderr } = await run('--skip-checksums');
    expect([after, stderr, text]).toEqual([0, '', expect.stringContaining('read 0 bytes.\nNothing is wrong.\n')]);
    for (const secret of [new URL(files.url).password, SECRET_KEY]) expect(stdout).not.toContain(secret);
  });

  it('ends with 1 and says why where it refuses to mend', async () => {
    await loseObject(files, ref, await storeFile(files, ref));
    const refused = await run('--mend');
    expect([refused.code, refused.stdout]).toEqual([1, expect.stringContaining('Nothing was mended: most files have no')]);
    expect((await run('--mend', '--force')).code).toBe(0);
  });

  it('ends with 2 for unknown arguments, wrong settings, and a database that is away or empty', async () => {
    expect(await run('--fix')).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining("Unknown option '--fix'") });
    const wrong = await runWith({ DATABASE_URL: 'mysql://root:hunter2@x', OBJECTS_DIR: '' });
    expect(wrong).toMatchObject({ code: 2, stderr: expect.stringMatching(/^Wrong settings:\n {2}DATABASE_URL must be a URL/) });
    expect(wrong.stderr).not.toContain('hunter2');
    const away = await runWith({ DATABASE_URL: 'postgres://a:hunter2@127.0.0.1:1/x' });
    expect(away).toMatchObject({ code: 2, stderr: 'The check could not be done: connect ECONNREFUSED 127.0.0.1:1.\n' });
    const empty = await createEmptyTestDatabase();
    const strange = await runWith({ DATABASE_URL: empty.url });
    expect(strange).toMatchObject({ code: 2, stderr: expect.stringContaining('no tables of the files service') });
    await empty.drop();
    const { code, stdout } = await run('--help');
    expect([code, stdout]).toEqual([0, expect.stringMatching(/^Usage: node services\/files\/src\/main\.ts check \[--mend\]/)]);
  });

  it('shows its progress, and ends immediately on SIGINT with nothing half done', async () => {
    const lost = await storeFile(files, ref);
    await loseObject(files, ref, lost);
    // With holes only, and too long to be read.
    await truncate(pathOf(files, ref, await storeFile(files, ref)), 64 * 1024 ** 3);
    const { child, stdout, stderr, ended } = runMain(settings(), 'check', '--mend');
    await eventually(() => stdout().includes(lost) && stderr() !== '', { timeoutMs: 15_000 });
    expect(stderr()).toMatch(/^\d of 2 files, \d+\.\d [MG]iB read, 0 objects, 1 problem\n/);
    child.kill('SIGINT');
    expect(await ended).toMatchObject({ code: 130 });
    expect((await files.db.query('select from file')).rowCount).toBe(2);
  });
});

it('progress on a terminal is one line, rewritten when it changes, which findings replace', async () => {
  const CLEAR_LINE = '\r\u001B[2K';
  const written: string[] = [];
  const write = (text: string) => void written.push(text);
  const counts = { ...createCounts(), files: 1_200, filesExpected: 3_400, bytesRead: 2.5 * 1024 ** 2, objects: 1 };
  const progress = startProgress({ out: { write }, err: { write, isTTY: true, columns: 40 } }, counts);
  await eventually(() => written.length === 1);
  progress.print('found');
  counts.files += 1;
  await eventually(() => written.length === 4);
  progress.end();
  const line = `${CLEAR_LINE}1,200 of 3,400 files, 2.5 MiB read, 1 o`;
  expect(written).toEqual([line, CLEAR_LINE, 'found\n', line.replace('1,200', '1,201'), CLEAR_LINE]);
});
