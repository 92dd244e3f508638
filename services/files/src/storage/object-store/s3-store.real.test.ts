import { startS3Server } from '@latchkey/testkit/s3/s3-server';
import { expect, it } from 'vitest';
import { newKey } from '../../testing/object-store/bodies.ts';
import { describeS3Store } from '../../testing/object-store/s3-contract.ts';
import { createS3Store } from './s3-store.ts';

const server = await startS3Server();

if ('unavailable' in server) {
  it.skip('an S3 store on a real server', { meta: { needs: server.unavailable } });
} else {
  const settings = describeS3Store('an S3 store on a real server', server, true);

  it('reports a wrong secret and a missing bucket, without the key', async () => {
    const wrong = createS3Store({ ...settings, S3_SECRET_ACCESS_KEY: 'wrong-secret' });
    await expect(wrong.stat(newKey())).rejects.toMatchObject({ name: 'S3Error', status: 403 });
    const listing = wrong.list()[Symbol.asyncIterator]().next();
    const err = await listing.catch((reason: unknown) => reason);
    expect(err).toMatchObject({ name: 'S3Error', code: 'SignatureDoesNotMatch', status: 403 });
    expect(JSON.stringify({ ...(err as object), text: String(err) })).not.toMatch(/latchkey|wrong-secret|Signature=/);
    const missing = createS3Store({ ...settings, S3_BUCKET: 'missing' });
    await expect(missing.check()).rejects.toMatchObject({ name: 'S3Error', status: 404 });
  });
}
