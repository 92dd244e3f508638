import { startS3Server } from '@latchkey/testkit/s3-server';
import { describe, expect, it } from 'vitest';
import { describeS3Store } from '../../testing/object-store/s3-contract.ts';
import { createS3Store } from './s3-store.ts';

const server = await startS3Server();

if ('unavailable' in server) {
  describe.skip(`an S3 store on a real server (${server.unavailable})`, () => {
    it('is skipped', () => undefined);
  });
} else {
  const { endpoint, accessKeyId, secretAccessKey, stop } = server;
  describeS3Store('an S3 store on a real server', {
    server: { endpoint, accessKeyId, secretAccessKey, listsUnfinished: true, readsUrls: true },
    stop,
  });

  describe('an S3 store on a real server, with other settings', () => {
    const settings = {
      endpoint,
      accessKeyId,
      secretAccessKey,
      region: 'us-east-1',
      bucket: 'objects',
      forcePathStyle: true,
    } as const;

    it('tells a wrong secret and a missing bucket, and of the key nothing', async () => {
      const wrong = createS3Store({ ...settings, secretAccessKey: 'wrong-secret' });
      const err = await wrong.stat('00000000-0000-4000-8000-000000000000/00000000-0000-4000-8000-000000000000').catch((e) => e);
      expect(err).toMatchObject({ name: 'S3Error', status: 403 });
      const listed = await wrong
        .list()
        [Symbol.asyncIterator]()
        .next()
        .catch((e: unknown) => e);
      expect(listed).toMatchObject({ name: 'S3Error', code: 'SignatureDoesNotMatch', status: 403 });
      expect(JSON.stringify({ ...(listed as object), text: String(listed) })).not.toMatch(/latchkey|wrong-secret|Signature=/);
      const missing = createS3Store({ ...settings, bucket: 'missing' });
      await expect(missing.check()).rejects.toMatchObject({ name: 'S3Error', status: 404 });
    });
  });
}
