import { type EmbeddedPostgres, startPostgres } from '@latchkey/embedded/postgres/postgres';
import { type OwnServer, startOwnServer } from '../process/own-server.ts';

/** Its URL is the superuser's. */
export type OwnPostgres = OwnServer;

/** Starts a PostgreSQL that is as durable as that of a deployment, in a few seconds. */
export const startOwnPostgres = (): Promise<OwnPostgres> =>
  startOwnServer<EmbeddedPostgres>(
    (dataDir, earlier) =>
      startPostgres({ dataDir, connectionsMax: 300, removeDirWhenOrphaned: dataDir, ...(earlier && { port: earlier.port }) }),
    (server) => server.url(),
  );
