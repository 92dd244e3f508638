import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { startSubjectForTest, tell } from '../testing/faults/own-subject.ts';

/** Promises R9: a full disk is an error within 10 s and leaves nothing; the next upload that fits is stored. */
const FAILED_MS_MAX = 10_000;

const MIB = 1024 * 1024;
const disk = mountSmallDisk();

describe.skipIf('unavailable' in disk)(`a full disk${'unavailable' in disk ? ` (${disk.unavailable})` : ''}`, () => {
  const dir = 'dir' in disk ? disk.dir : '';
  afterAll(() => unmount(dir));

  it('fails what does not fit and nothing else', async () => {
    const subject = await startSubjectForTest({ env: { OBJECTS_DIR: dir } });
    expect(tell(await subject.upload('fits', MIB))).toBe('200');
    for (const chunked of [true, false]) {
      const startedAt = performance.now();
      expect(tell(await subject.upload('large', 12 * MIB, { chunked }))).toBe('503 INTERNAL_ERROR');
      expect(performance.now() - startedAt).toBeLessThan(FAILED_MS_MAX);
      expect(tell(await subject.upload(`after-${chunked}`, 1_000))).toBe('200');
    }
    expect((await subject.agreed()).map(({ name }) => name).sort()).toEqual(['after-false', 'after-true', 'fits']);
  });
});

/** A file system of 8 MiB, where we may mount one. */
function mountSmallDisk(): { readonly dir: string } | { readonly unavailable: string } {
  const dir = mkdtempSync(join(tmpdir(), 'latchkey-small-disk-'));
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=8m', 'tmpfs', dir], { stdio: 'pipe' });
    return { dir };
  } catch (err) {
    rmSync(dir, { recursive: true });
    return { unavailable: `no small file system can be mounted here: ${(err as Error).message.split('\n').at(-2) ?? ''}` };
  }
}

function unmount(dir: string): void {
  execFileSync('umount', [dir]);
  rmSync(dir, { recursive: true });
}
