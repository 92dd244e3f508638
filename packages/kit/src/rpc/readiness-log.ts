import type { Logger } from '../logger.ts';
import type { ReadinessCheck } from './health.ts';

/**
 * Logs why a service is not ready, once for each reason, and when it is ready again: a probe's answer, which anyone may read, does not say it.
 */
export function logReadiness(checkReady: ReadinessCheck, logger: Logger): ReadinessCheck {
  let reason: string | undefined;
  return async () => {
    try {
      await checkReady();
    } catch (err) {
      const message = err instanceof Error ? err.message : String(err);
      if (message !== reason) logger.warn({ err }, 'not ready');
      reason = message;
      throw err;
    }
    if (reason !== undefined) logger.info('ready again');
    reason = undefined;
  };
}
