import { fastify } from 'fastify';
import pg from 'pg';

/** The least that can answer the same: a bare Fastify handler that does one primary-key SELECT with `pg`. */
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
app.get('/healthz', () => ({ status: 'ok' }));

await app.listen({ host: '127.0.0.1', port: Number(process.env.PORT) });
process.once('SIGTERM', () => process.exit(0));
