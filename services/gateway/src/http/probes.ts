import { atMostEvery } from '@latchkey/kit/at-most-every';
import type { Logger } from '@latchkey/kit/logger';
import { logReadiness } from '@latchkey/kit/rpc/readiness-log';
import type { FastifyInstance } from 'fastify';

/** Paths without a rate limit. */
export const PROBE_PATHS: ReadonlySet<string> = new Set(['/healthz', '/readyz']);

/** Age up to which a readiness result is reused, in milliseconds: probes have no rate limit, and each check asks the database. */
const READINESS_AGE_MS_MAX = 250;

/** Serves `/healthz`, which succeeds while the process runs, and `/readyz`, which also checks what it depends on. */
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
