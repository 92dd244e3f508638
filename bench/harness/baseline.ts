import { createHash } from 'node:crypto';
import { open, writeFile } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { fastify } from 'fastify';
import pg from 'pg';

/** The least that can answer the same: bare Fastify handlers. */
const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: 10 });
const app = fastify();

app.get<{ Querystring: { applicationId: string } }>('/settings', async (request) => {
  const { rows } = await pool.query(
    `select license_requires_client_id, user_requires_client_id, user_requires_license, version, status
      from apps.application where id = $1`,
    [request.query.applicationId],
  );
  return rows[0];
});
const BUFFER_BYTES = 1024 * 1024;

/** Hashes a body and writes it to a file through one buffer. */
app.addContentTypeParser('application/octet-stream', (_request, _payload, done) => done(null));
app.post<{ Querystring: { name: string } }>('/upload', async (request) => {
  const file = await open(join(process.env.DATA_DIR ?? '', request.query.name), 'w');
  const hash = createHash('sha256');
  const buffer = Buffer.allocUnsafe(BUFFER_BYTES);
  let filled = 0;
  let byteSize = 0;
  for await (const chunk of request.raw as IncomingMessage & AsyncIterable<Buffer>) {
    hash.update(chunk);
    byteSize += chunk.byteLength;
    for (let taken = 0; taken < chunk.byteLength; ) {
      const copied = chunk.copy(buffer, filled, taken);
      taken += copied;
      filled += copied;
      if (filled < BUFFER_BYTES) continue;
      await file.write(buffer, 0, filled);
      filled = 0;
    }
  }
  await file.write(buffer, 0, filled);
  await file.close();
  return { byteSize, checksum: hash.digest('hex') };
});

/** Converts an image as the service does, and writes it to a file. */
app.addContentTypeParser('image/jpeg', { parseAs: 'buffer', bodyLimit: 4 * BUFFER_BYTES }, (_request, body, done) =>
  done(null, body),
);
app.post<{ Body: Buffer }>('/avatar', async (request) => {
  const { default: sharp } = await import('sharp');
  sharp.cache(false);
  sharp.concurrency(1);
  const image = sharp(request.body, { failOn: 'warning', sequentialRead: true })
    .autoOrient()
    .resize({ width: 256, height: 256, fit: 'inside', withoutEnlargement: true })
    .webp({ quality: 82, alphaQuality: 90, effort: 4 });
  await writeFile(join(process.env.DATA_DIR ?? '', 'avatar.webp'), await image.toBuffer());
  return { avatarUrl: '/avatar' };
});
app.get('/readyz', () => ({ status: 'ok' }));

await app.listen({ host: '127.0.0.1', port: Number(process.env.PORT) });
process.once('SIGTERM', () => process.exit(0));
