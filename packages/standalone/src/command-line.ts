import { parseArgs } from 'node:util';
import type { Shape } from './settings.ts';

export type Command = { readonly help: true } | { readonly help: false; readonly shape: Shape };

export const HELP = `Usage: npm start [-- --deployed]

Runs Latchkey with an embedded PostgreSQL and Redis.

  --deployed   run each service in its own process, as in a larger deployment
  --help       show this

Settings are environment variables, among them:

  PORT           port of the REST interface (8080)
  REALTIME_PORT  port of live connections (8081)
  HOST           address to listen on (0.0.0.0)
  PUBLIC_URL     URL by which clients reach it (http://localhost:PORT)
  DATA_DIR       folder of all data (.data)
  DATABASE_URL   a PostgreSQL to use instead of the embedded one
  REDIS_URL      a Redis to use instead of the embedded one
  SECRET_KEY     secret of at least 32 characters (created in DATA_DIR)
  LOG_LEVEL      fatal, error, warn, info, debug, trace or silent (info)

docs/settings.md names the others.
`;

export function readCommandLine(args: readonly string[]): Command {
  const { values } = parseArgs({
    args: [...args],
    options: { deployed: { type: 'boolean' }, help: { type: 'boolean', short: 'h' } },
  });
  if (values.help) return { help: true };
  return { help: false, shape: values.deployed ? 'deployed' : 'standalone' };
}
