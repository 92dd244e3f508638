import { truncate } from 'node:fs/promises';
import { startHttpServer } from '@latchkey/kit/testing/servers';
import { eventually } from '@latchkey/testkit/eventually';
import { createEmptyTestDatabase } from '@latchkey/testkit/postgres/database';
import { beforeEach, expect, it, onTestFinished, vi } from 'vitest';
import { readFilesConfig } from '../../config.ts';
import { runAdmin } from '../../testing/command.ts';
import { damageObject, loseObject, pathOf, putOrphan, putUnfinished, removeAll } from '../../testing/damage.ts';
import type { OwnedRef } from '../../testing/fake-apps.ts';
import { storeFile } from '../../testing/stored-file.ts';
import { SECRET_KEY, useTestFiles } from '../../testing/test-files.ts';
import { explainError, runCheck, runCheckCommand } from './check-command.ts';

const files = useTestFiles();
let ref: OwnedRef;
beforeEach(async () => {
  await removeAll(files);
  ref = files.createOwned();
});

const settings = () => {
  return { DATABASE_URL: files.url, REDIS_URL: 'redis://localhost:1', SECRET_KEY, OBJECTS_DIR: files.objectsDir };
};

/** Runs a check in this process; returns its exit code and its lines. */
async function run(options: { repair?: boolean; skipChecksums?: boolean; force?: boolean } = {}, env = {}) {
  let text = '';
  const output = {
    write(part: string) {
      text += part;
    },
  };
  const config = readFilesConfig({ ...settings(), ...env });
  const all = { repair: false, skipChecksums: false, force: false, ...options };
  const code = await runCheck(config, all, { command: 'check', out: output, err: output });
  return { code, lines: text.trimEnd().split('\n') };
}

it('reports each finding with exit code 1, and after its repair 0', async () => {
  const lost = await storeFile(files, ref, { name: 'lost.zip', bytes: Buffer.alloc(1_234) });
  const [cut, rotten] = [await storeFile(files, ref, { name: 'cut' }), await storeFile(files, ref, { name: 'rotten' })];
  await loseObject(files, ref, lost);
  await damageObject(files, ref, cut, 'c');
  await damageObject(files, ref, rotten, 'c0ntent');
  const [orphan, unfinished] = [await putOrphan(files), await putUnfinished(files)];
  await files.db.query('update application_usage set file_count = 5');
  const { code, lines } = await run();
  const { host, pathname, password } = new URL(files.url);
  const of = `of application ${ref.applicationId}`;
  const kinds = '1 missing object, 2 damaged objects, 1 unknown object, 1 unfinished upload, 1 wrong usage';
  const expected = [
    `Comparing the database ${host}${pathname} with the folder ${files.objectsDir}.`,
    `missing object      file ${lost} "lost.zip" (1,234 bytes) ${of}: there is no object`,
    `damaged object      file ${cut} "cut" (7 bytes) ${of}: the object has 1 byte`,
    expect.stringMatching(new RegExp(`file ${rotten} .* the SHA-256 is [0-9a-f]{64} and not [0-9a-f]{64}$`)),
    `unknown object      ${orphan}: 5 bytes that belong to no file`,
    `unfinished upload   ${unfinished}: left by an upload without an upload intent`,
    `wrong usage         application ${ref.applicationId}: 5 files and 3 MiB recorded, 3 files and 3 MiB there`,
    expect.stringMatching(/^Checked 3 files, 3 objects, 1 application in \d+\.\d s; read 8 bytes\.$/),
    `Found 6 problems: ${kinds}.`,
    'Nothing was changed. To repair it: check --repair (check --help says how).',
  ];
  expect([code, lines]).toEqual([1, expect.arrayContaining(expected)]);
  expect(lines).toHaveLength(expected.length);
  for (const secret of [password, SECRET_KEY]) expect(lines.join()).not.toContain(secret);
  const repaired = await run({ repair: true });
  expect([repaired.code, repaired.lines.at(-1)]).toEqual([0, 'Repaired 6; 0 left.']);
  const after = await run({ skipChecksums: true });
  expect([after.code, after.lines.slice(-2)]).toEqual([0, [expect.stringContaining('read 0 bytes.'), 'Nothing is wrong.']]);
});

it.each([
  ['refuses a repair where most files have no object, as with another folder', 1, 11, 0, 'most files'],
  ['refuses a repair where no file has an object, as with an unmounted folder', 0, 1, 0, 'most files'],
  ['refuses a repair where most objects have no file, as with another database', 1, 0, 11, 'most objects'],
  ['repairs a few files without an object', 1, 10, 0, undefined],
  ['repairs half of the files', 11, 11, 0, undefined],
] as const)('%s', async (_what, stored, lost, orphans, doubt) => {
  for (let i = 0; i < stored; i += 1) await storeFile(files, ref);
  for (let i = 0; i < lost; i += 1) await loseObject(files, ref, await storeFile(files, ref));
  for (let i = 0; i < orphans; i += 1) await putOrphan(files);
  const { code, lines } = await run({ repair: true });
  const last = doubt ? `Nothing was repaired: ${doubt}` : `Repaired ${lost}; 0 left.`;
  expect([code, lines.at(-1)]).toEqual([doubt ? 1 : 0, expect.stringContaining(last)]);
  expect((await run({ repair: true, force: true })).code).toBe(0);
  expect((await files.db.query('select from file')).rowCount).toBe(stored);
});

it('explains wrong settings, a database that is away or empty, and a missing bucket, without a secret', async () => {
  const explain = (env: Record<string, string>) => run({}, env).then(() => 'it ran', explainError);
  const wrong = await explain({ DATABASE_URL: 'mysql://root:hunter2@x', OBJECTS_DIR: '' });
  expect(wrong).toMatch(/^Wrong settings:\n {2}DATABASE_URL must be a URL/);
  expect(wrong).not.toContain('hunter2');
  const away = await explain({ DATABASE_URL: 'postgres://a:hunter2@127.0.0.1:1/x' });
  expect(away).toBe('The check failed: connect ECONNREFUSED 127.0.0.1:1.');
  const empty = await createEmptyTestDatabase();
  expect(await explain({ DATABASE_URL: empty.url })).toContain('no tables of the files service');
  await empty.drop();
  const S3_ENDPOINT = await startHttpServer((_req, res) => void res.writeHead(404).end());
  const keys = { S3_ACCESS_KEY_ID: 'id', S3_SECRET_ACCESS_KEY: 'hunter2' };
  const bucket = await explain({ OBJECT_STORE: 's3', S3_BUCKET: 'mistyped', S3_ENDPOINT, S3_FORCE_PATH_STYLE: 'true', ...keys });
  expect(bucket).toContain('S3 bucket `mistyped` does not exist at');
});

it.each([
  ['--help', 'stdout', undefined, /^Usage: check \[--repair\]/],
  ['--fix', 'stderr', 2, /^Unknown option '--fix'.*\n\nUsage: check/],
] as const)('prints its usage for %s', async (arg, stream, code, text) => {
  const before = process.exitCode;
  const write = vi.spyOn(process[stream], 'write').mockReturnValue(true);
  onTestFinished(() => {
    write.mockRestore();
    process.exitCode = before;
  });
  await runCheckCommand('check', [arg], () => expect.unreachable());
  expect([process.exitCode, write.mock.calls.join()]).toEqual([code, expect.stringMatching(text)]);
});

it('shows its progress, and ends immediately on SIGINT with nothing half done', { timeout: 30_000 }, async () => {
  const lost = await storeFile(files, ref);
  await loseObject(files, ref, lost);
  // With holes only, and too long to be read.
  await truncate(pathOf(files, ref, await storeFile(files, ref)), 64 * 1024 ** 3);
  const { child, stdout, stderr, ended } = runAdmin(settings(), 'check-files', '--repair');
  await eventually(() => stdout().includes(lost) && stderr() !== '', { timeoutMs: 25_000 });
  expect(stderr()).toMatch(/^1 file, \d+\.\d [MG]iB read, 0 objects, 1 problem\n/);
  child.kill('SIGINT');
  expect(await ended).toMatchObject({ code: 130 });
  expect((await files.db.query('select from file')).rowCount).toBe(2);
});
