import { cachedReadiness, probeReadiness, type ReadinessCheck } from '@latchkey/kit/http/cached-readiness';
import type { Logger } from '@latchkey/kit/log/logger';
import type { FastifyInstance } from 'fastify';

/** Paths without a rate limit. */
export const PROBE_PATHS: ReadonlySet<string> = new Set(['/healthz', '/readyz']);

/** Serves `/healthz`, which succeeds while the process runs, and `/readyz`, which also checks what it depends on. */
export function registerProbes(app: FastifyInstance, checkReady: ReadinessCheck, logger: Logger): void {
  const hidden = { schema: { hide: true } as object };
  const cached = cachedReadiness(checkReady, logger);
  app.get('/healthz', hidden, () => ({ status: 'ok' }));
  app.get('/readyz', hidden, async (_request, reply) => {
    const { statusCode, status } = await probeReadiness(cached);
    return reply.code(statusCode).send({ status });
  });
}
