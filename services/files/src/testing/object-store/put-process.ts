/** Stores one object of zeros on disk: `put-process.ts <folder> <key> <bytes>`. */
import { createDiskStore } from '../../storage/object-store/disk-store.ts';
import { bodyOf } from './bodies.ts';

const [, , dir = '', key = '', bytes = ''] = process.argv;
// Beyond a limit on the size of files, a process without a handler is killed.
process.on('SIGXFSZ', () => undefined);
await createDiskStore(dir)
  .put(key, bodyOf(Buffer.alloc(Number(bytes))), new AbortController().signal)
  .then(
    () => process.stdout.write('stored\n'),
    (err: NodeJS.ErrnoException) => process.stdout.write(`failed ${err.code}\n`),
  );
