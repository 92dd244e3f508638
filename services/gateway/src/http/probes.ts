import { atMostEvery } from '@latchkey/kit/at-most-every';
import type { Logger } from '@latchkey/kit/logger';
import { logReadiness } from '@latchkey/kit/rpc/readiness-log';
import type { FastifyInstance } from 'fastify';

/** Paths that no limit is kept for. */
export const PROBE_PATHS: ReadonlySet<string> = new Set(['/healthz', '/readyz']);

/** How long an answer to the readiness probe stands, in milliseconds. Nobody counts probes, and each check asks the database. */
const READINESS_AGE_MS_MAX = 250;

/** Puts the probes on the server: `/healthz` while the process answers at all, `/readyz` while what it depends on does too. */
export function registerProbes(app: FastifyInstance, checkReady: () => Promise<void>, logger: Logger): void {
  const hidden = { schema: { hide: true } as object };
  const check = logReadiness(checkReady, logger);
  const isReady = atMostEvery(READINESS_AGE_MS_MAX, () =>
    check().then(
      () => true,
      () => false,
    ),
  );
  app.get('/healthz', hidden, () => ({ status: 'ok' }));
  app.get('/readyz', hidden, async (_request, reply) => {
    if (await isReady()) return { status: 'ready' };
    return reply.code(503).send({ status: 'not ready' });
  });
}
