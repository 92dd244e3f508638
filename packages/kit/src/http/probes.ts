import type { FastifyInstance } from 'fastify';
import type { Logger } from '../log/logger.ts';

/** Rejects while the process can't do its work. */
export type ReadinessCheck = () => Promise<void>;

/** Age at which a result is out of date: anyone may ask, and each check queries the database. */
const AGE_MS_MAX = 250;

/** A check that runs once for all callers of a moment, and logs each reason why it fails once. */
export function cachedReadiness(check: ReadinessCheck, logger: Logger): ReadinessCheck {
  let reason: string | undefined;
  const logged = async () => {
    await check().catch((err: unknown) => {
      const message = err instanceof Error ? err.message : String(err);
      if (message !== reason) logger.warn({ err }, 'not ready');
      reason = message;
      throw err;
    });
    if (reason !== undefined) logger.info('ready again');
    reason = undefined;
  };
  let result: Promise<void> | undefined;
  let staleAt = 0;
  return () => {
    if (!result || performance.now() >= staleAt) {
      staleAt = Number.POSITIVE_INFINITY;
      result = logged().finally(() => {
        staleAt = performance.now() + AGE_MS_MAX;
      });
    }
    return result;
  };
}

export async function probeReadiness(check: ReadinessCheck): Promise<{ statusCode: number; status: string }> {
  return check().then(
    () => ({ statusCode: 200, status: 'ready' }),
    () => ({ statusCode: 503, status: 'not ready' }),
  );
}

/**
 * `/healthz` succeeds while the process runs, `/readyz` while it is ready. The checks of apps,
 * files and identity are in `database/data-service.ts`, those of gateway and realtime in
 * `service.ts`; `process/run-service.ts` adds that peers accept the credential.
 */
export function registerProbes(app: FastifyInstance, checkReady: ReadinessCheck): void {
  const hidden = { schema: { hide: true } as object };
  app.get('/healthz', hidden, () => ({ status: 'ok' }));
  app.get('/readyz', hidden, async (_request, reply) => {
    const { statusCode, status } = await probeReadiness(checkReady);
    return reply.code(statusCode).send({ status });
  });
}
