import { execFile, spawnSync } from 'node:child_process';
import { type FileHandle, mkdir, mkdtemp, open, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { newId } from '@latchkey/kit/validation/id';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { bodyOf, collect, newKey, someBytes } from '../../testing/object-store/bodies.ts';
import { describeObjectStore, listOf } from '../../testing/object-store/object-store-contract.ts';
import { createFolders, diskLayout, temporaryPath } from './disk-layout.ts';
import { createDiskStore } from './disk-store.ts';
import type { ObjectStore } from './object-store.ts';

const never = new AbortController().signal;
/** True if a process may mount a file system here. */
const NAMESPACE = 'unshare --user --map-root-user --mount';
const hasNamespaces = spawnSync('/bin/sh', ['-c', `${NAMESPACE} mount -t tmpfs none /mnt`]).status === 0;

const inodeOf = (path: string) =>
  stat(path).then(
    ({ ino }) => ino,
    () => undefined,
  );

const PUT_PROCESS = fileURLToPath(new URL('../../testing/object-store/put-process.ts', import.meta.url));

/** Stores an object in a separate process, which the shell command starts as "$@". */
async function runPut(dir: string, byteSize: number, wrapper: string): Promise<string[]> {
  const args = ['-c', wrapper, 'sh', process.execPath, PUT_PROCESS, dir, newKey(), String(byteSize)];
  return (await promisify(execFile)('/bin/sh', args)).stdout.trimEnd().split('\n');
}

const newDir = () => mkdtemp(join(tmpdir(), 'latchkey-objects-'));

describeObjectStore('a disk store', async () => {
  const dir = await newDir();
  return {
    store: createDiskStore(dir),
    sameStore: createDiskStore(dir),
    async leaveUnfinished(key) {
      await createFolders(diskLayout(dir));
      await writeFile(temporaryPath(diskLayout(dir), key), 'some bytes');
    },
    close: () => rm(dir, { recursive: true }),
  };
});

describe('a folder of objects', () => {
  let dir: string;
  beforeEach(async () => {
    dir = join(await newDir(), 'made', 'when needed');
  });
  afterEach(() => rm(dirname(dirname(dir)), { recursive: true }));

  it('is closed to other users, and empty once the last object is removed', async () => {
    const store = createDiskStore(dir);
    const key = newKey();
    await store.put(key, bodyOf(someBytes(1)), never);
    const modes = await Promise.all(
      ['.', 'tmp', 'objects', dirname(join('objects', key)), join('objects', key)].map(async (path) => {
        return ((await stat(join(dir, path))).mode & 0o777).toString(8);
      }),
    );
    expect(modes).toEqual(['700', '700', '700', '700', '600']);
    await store.remove(key);
    expect(await readdir(join(dir, 'objects'))).toEqual([]);
    expect(await readdir(join(dir, 'tmp'))).toEqual([]);
  });

  it('stores objects while others of the same application are removed', async () => {
    const applicationId = newId();
    const stores = [createDiskStore(dir), createDiskStore(dir)];
    const writeAndRemove = async (target: ObjectStore) => {
      const key = newKey(applicationId);
      const bytes = someBytes(100);
      await target.put(key, bodyOf(bytes), never);
      expect((await collect(await target.read(key))).equals(bytes)).toBe(true);
      await target.remove(key);
    };
    const rounds = Array.from({ length: 8 }, async (_, index) => {
      for (let round = 0; round < 5; round += 1) await writeAndRemove(stores[index % 2] as ObjectStore);
    });
    await Promise.all(rounds);
    expect(await listOf(createDiskStore(dir), applicationId)).toEqual([]);
  });

  it('syncs an object before its name, and the name before it resolves', async () => {
    const store = createDiskStore(dir);
    await store.check();
    const key = newKey();
    const path = join(dir, 'objects', key);
    const handle = await open(dir, 'r');
    await handle.close();
    const synced: unknown[] = [];
    const sync = vi.spyOn(Object.getPrototypeOf(handle) as FileHandle, 'sync').mockImplementation(async function (
      this: FileHandle,
    ) {
      const { ino, size } = await this.stat();
      const inodes = await Promise.all([dirname(path), join(dir, 'objects')].map(inodeOf));
      const isNamed = (await inodeOf(path)) !== undefined;
      synced.push([['application', 'objects'][inodes.indexOf(ino)] ?? `file of ${size}`, isNamed]);
    });
    await store.put(key, bodyOf(someBytes(3)), never).finally(() => sync.mockRestore());
    expect(synced).toEqual([
      ['file of 3', false],
      ['application', true],
      ['objects', true],
    ]);
  });

  it('neither lists nor removes foreign files', async () => {
    const store = createDiskStore(dir);
    await store.check();
    const applicationId = newId();
    await mkdir(join(dir, 'objects', applicationId));
    const foreign = ['lost+found', 'objects/notes', `objects/${applicationId}/.nfs0001`, 'tmp/.check-other', `tmp/${newId()}.x`];
    for (const path of foreign) await writeFile(join(dir, path), 'x');
    expect(await listOf(store, '')).toEqual([]);
    await store.remove(newKey(applicationId));
    for (const path of foreign) expect((await stat(join(dir, path))).size).toBe(1);
  });

  it('creates no URLs, and fails its check where it is not writable', async () => {
    expect(
      await createDiskStore(dir).createDownloadUrl(newKey(), { fileName: 'a', contentType: 'text/plain', lifetimeSeconds: 1 }),
    ).toBeUndefined();
    const file = join(dirname(dirname(dir)), 'file');
    await writeFile(file, '');
    await expect(createDiskStore(join(file, 'below')).check()).rejects.toThrow('ENOTDIR');
  });

  it('leaves nothing of a file beyond the limit of the process', async () => {
    // In blocks of 512 or 1,024 bytes, depending on the shell: 2 or 4 MiB.
    expect(await runPut(dir, 12 * 1024 * 1024, 'ulimit -f 4096; exec "$@"')).toEqual(['failed EFBIG']);
    expect(await readdir(join(dir, 'tmp'))).toEqual([]);
    expect(await listOf(createDiskStore(dir), '')).toEqual([]);
  });

  it('leaves nothing on a full disk', {
    skip: !hasNamespaces,
    meta: { needs: 'a user who may mount a file system' },
  }, async () => {
    await mkdir(dir, { recursive: true });
    const wrapper = [`mount -t tmpfs -o size=4m none "${dir}"`, '"$@"', `cd "${dir}"; echo left: $(find . -type f)`].join('; ');
    const put = (byteSize: number) => runPut(dir, byteSize, `exec ${NAMESPACE} /bin/sh -c '${wrapper}' sh "$@"`);
    expect(await put(12 * 1024 * 1024)).toEqual(['failed ENOSPC', 'left:']);
    expect(await put(1024 * 1024)).toEqual(['stored', expect.stringMatching(/^left: \.\/objects\/\S+$/)]);
  });
});
