import type { Logger } from './logger.ts';
import { releaseUnusedMemory } from './unused-memory.ts';

/** Something that is started once and stopped once. */
export interface Runnable {
  start(): Promise<void>;
  stop(): Promise<void>;
}

/** Settings of {@link runProcess}. */
export interface RunOptions {
  readonly logger: Logger;
  /** How long an ordered stop may take before the process ends anyway, in milliseconds. */
  readonly stopTimeoutMs: number;
}

/** Longest wait for the last log lines to be written, in milliseconds. */
const FLUSH_TIMEOUT_MS = 500;

/**
 * Runs a service as this process: starts it, stops it in order on SIGTERM or SIGINT with a deadline, and ends at once on a second
 * signal. An error that nobody caught ends the process with code 1.
 */
export async function runProcess(service: Runnable, options: RunOptions): Promise<void> {
  const { logger } = options;
  const end = (code: number) => {
    process.exitCode = code;
    setTimeout(() => process.exit(), FLUSH_TIMEOUT_MS);
    logger.flush(() => process.exit());
  };
  const stop = stopOnce(service, options, end);
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => stop(signal));
  process.on('uncaughtException', (err) => {
    logger.fatal({ err }, 'uncaught exception');
    end(1);
  });
  try {
    await service.start();
    releaseUnusedMemory();
  } catch (err) {
    logger.fatal({ err }, 'start failed');
    end(1);
  }
}

function stopOnce(service: Runnable, { logger, stopTimeoutMs }: RunOptions, end: (code: number) => void) {
  let stopping = false;
  return (signal: string) => {
    if (stopping) process.exit(1);
    stopping = true;
    logger.info({ signal }, 'stopping');
    const deadline = setTimeout(() => {
      logger.error({ stopTimeoutMs }, 'stop took too long');
      end(1);
    }, stopTimeoutMs);
    service.stop().then(
      () => {
        clearTimeout(deadline);
        end(0);
      },
      (err: unknown) => {
        logger.error({ err }, 'stop failed');
        end(1);
      },
    );
  };
}

/**
 * Stops several things one after the other, each even if one before it failed.
 *
 * @throws AggregateError of all that failed
 */
export async function stopAll(...stops: Array<() => unknown>): Promise<void> {
  const errors: unknown[] = [];
  for (const stop of stops) {
    try {
      await stop();
    } catch (err) {
      errors.push(err);
    }
  }
  if (errors.length > 0) throw new AggregateError(errors, 'Not everything stopped cleanly');
}
