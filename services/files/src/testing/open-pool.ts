import pg from 'pg';

/** A pool on the service's schema. */
export function openPool(url: string): pg.Pool {
  const pool = new pg.Pool({ connectionString: url, options: '-c search_path=files', max: 4 });
  // end() is done before the connections are closed, so that dropping the database may still cut
  // one off.
  pool.on('error', () => {});
  return pool;
}
