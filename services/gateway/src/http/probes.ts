import { cachedReadiness, probeReadiness, type ReadinessCheck } from '@latchkey/kit/http/readiness';
import type { Logger } from '@latchkey/kit/logger';
import type { FastifyInstance } from 'fastify';

/** Paths that no limit is kept for. */
export const PROBE_PATHS: ReadonlySet<string> = new Set(['/healthz', '/readyz']);

/** Adds the probes: `/healthz` while the process answers at all, `/readyz` while its dependencies do too. */
export function registerProbes(app: FastifyInstance, checkReady: ReadinessCheck, logger: Logger): void {
  const hidden = { schema: { hide: true } as object };
  const cached = cachedReadiness(checkReady, logger);
  app.get('/healthz', hidden, () => ({ status: 'ok' }));
  app.get('/readyz', hidden, async (_request, reply) => {
    const { statusCode, status } = await probeReadiness(cached);
    return reply.code(statusCode).send({ status });
  });
}
