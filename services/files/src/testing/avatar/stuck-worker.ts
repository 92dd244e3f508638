import { createLogger } from '@latchkey/kit/logger';
import { createAvatarWorker } from '../../avatar/avatar-queue.ts';
import { createDecoders } from '../../avatar/decoder/decoders.ts';
import { openContext } from '../../compose.ts';
import { readFilesConfig } from '../../config.ts';
import { createFakeApps } from '../fake-apps.ts';

/** A worker that says how far it has come and gets stuck there, to be killed. */
const [url = '', objectsDir = '', redisUrl = '', stuckAt = ''] = process.argv.slice(2);
const config = readFilesConfig({ DATABASE_URL: url, REDIS_URL: redisUrl, SECRET_KEY: 'x'.repeat(32), OBJECTS_DIR: objectsDir });
const { ctx } = openContext(config, createFakeApps().transport, createLogger('doomed', 'silent'));
const stuck = new Promise<never>(() => undefined);
const decoders = createDecoders({ atOnce: 2, pixelsMax: ctx.avatarLimits.pixelsMax, timeoutMs: 10_000 });

createAvatarWorker(
  {
    ...ctx,
    onSettled: () => undefined,
    decoders: {
      ...decoders,
      convert(image) {
        process.stdout.write('decoding\n');
        return stuckAt === 'decoding' ? stuck : decoders.convert(image);
      },
    },
    setAvatar() {
      process.stdout.write('recording\n');
      return stuck;
    },
  },
  redisUrl,
).start();
process.stdout.write('working\n');
// Nothing else keeps it alive while it waits for what never comes.
setInterval(() => undefined, 1_000);
