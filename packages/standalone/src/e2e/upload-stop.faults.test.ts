import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createEmptyTestDatabase, type TestDatabase } from '@latchkey/testkit/database';
import { eventually } from '@latchkey/testkit/eventually';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { type OwnSubject, startOwnSubject, startSubjectForTest, tell } from '../testing/faults/own-subject.ts';
import { serviceProcessesOf } from '../testing/processes-on.ts';
import '../testing/provided.ts';

/** Promises R8: uploads under way when a process is told to stop run to their end. */
const BYTE_SIZE = 1_300_017;

/** Longer than anything else that a stop waits for, so that the upload is what it waits for. */
const SLOWLY = { pieces: 25, pauseMs: 80 };

let objectsDir: string;
let database: TestDatabase;
beforeAll(async () => {
  objectsDir = await mkdtemp(join(tmpdir(), 'latchkey-e2e-objects-'));
  database = await createEmptyTestDatabase();
});
afterAll(async () => {
  await database.drop();
  await rm(objectsDir, { recursive: true, force: true });
});

it.each([true, false])(
  'SIGTERM during an upload lets it end, and then everything ends with code 0 (chunked: %s)',
  async (chunked) => {
    const options = {
      databaseUrl: database.url,
      env: { OBJECTS_DIR: objectsDir, SECRET_KEY: 'a secret key of the end-to-end tests' },
    };
    const subject = await startOwnSubject(options);
    const uploading = subject.upload(`slow-${chunked}`, BYTE_SIZE, { ...SLOWLY, chunked });
    await subject.receiving();
    const stopping = subject.instance.stop();
    expect(tell(await uploading)).toBe('200');
    await stopping;
    expect(await subject.instance.exited).toBe(0);

    const next = await startSubjectForTest(options);
    expect((await next.agreed()).map(({ name }) => name)).toContain(`slow-${chunked}`);
  },
);

it.runIf(inject('latchkeyInstance').shape === 'deployed')(
  'SIGTERM to one process alone lets the upload end, and another takes its place',
  async () => {
    const subject = await startSubjectForTest();
    for (const name of ['gateway', 'files']) {
      const pid = pidOf(subject, name);
      const uploading = subject.upload(`slow-${name}`, BYTE_SIZE, SLOWLY);
      await subject.receiving();
      process.kill(pid ?? 0, 'SIGTERM');
      expect(tell(await uploading)).toBe('200');
      await eventually(() => ![pid, undefined].includes(pidOf(subject, name)), { timeoutMs: 30_000 });
      const again = async () => expect(tell(await subject.upload(`next-${name}`, 100))).toBe('200');
      await eventually(again, { timeoutMs: 30_000, intervalMs: 200 });
    }
    const names = (await subject.agreed()).map((row) => row.name).sort();
    expect(names).toEqual(['next-files', 'next-gateway', 'slow-files', 'slow-gateway']);
  },
);

function pidOf({ instance }: OwnSubject, name: string): number | undefined {
  return serviceProcessesOf(instance.pid).find(([service]) => service === name)?.[1];
}
