/** Stores one object: `put-process.ts <folder or S3 settings in JSON> <key> <bytes> [hang]`. */
import { createDiskStore } from '../../storage/object-store/disk-store.ts';
import { createS3Store } from '../../storage/object-store/s3-store.ts';
import { bodyOf } from './bodies.ts';

const [, , place = '', key = '', bytes = '', hang] = process.argv;
// Beyond a limit on the size of files a process is killed, unless it says that it will see to that
// itself.
process.on('SIGXFSZ', () => undefined);

// A body that hangs keeps no process alive.
const alive = setInterval(() => undefined, 60_000);
const store = place.startsWith('{') ? createS3Store(JSON.parse(place)) : createDiskStore(place);
const body = bodyOf(Buffer.alloc(Number(bytes)), hang ? 'hangs' : 'ends');
if (hang) void body.drained.then(() => process.stdout.write('hangs\n'));
await store.put(key, body, new AbortController().signal).then(
  () => process.stdout.write('stored\n'),
  (err: NodeJS.ErrnoException) => process.stdout.write(`failed ${err.code}\n`),
);
clearInterval(alive);
await store.close();
