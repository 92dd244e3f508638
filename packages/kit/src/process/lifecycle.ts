import type { Logger } from '../log/logger.ts';
import { releaseUnusedMemory } from './unused-memory.ts';

export interface Runnable {
  start(): Promise<void>;
  stop(): Promise<void>;
}

const FLUSH_TIMEOUT_MS = 500;

/**
 * Runs a service as this process: starts it, and stops it in order on SIGTERM or SIGINT, within a
 * time limit. A second signal ends the process immediately; an uncaught error ends it with code 1.
 */
export async function runProcess(service: Runnable, logger: Logger, stopTimeoutMs: number): Promise<void> {
  const end = (code: number) => {
    process.exitCode = code;
    setTimeout(() => process.exit(), FLUSH_TIMEOUT_MS);
    logger.flush(() => process.exit());
  };
  const fail = (err: unknown, message: string) => {
    logger.fatal({ err }, message);
    end(1);
  };
  let isStopping = false;
  const stop = (signal: string) => {
    if (isStopping) process.exit(1);
    isStopping = true;
    logger.info({ signal }, 'stopping');
    setTimeout(() => {
      logger.error({ stopTimeoutMs }, 'stop took too long');
      end(1);
    }, stopTimeoutMs);
    service.stop().then(
      () => end(0),
      (err: unknown) => fail(err, 'stop failed'),
    );
  };
  for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, stop);
  process.on('uncaughtException', (err) => fail(err, 'uncaught exception'));
  try {
    await service.start();
    releaseUnusedMemory();
  } catch (err) {
    fail(err, 'start failed');
  }
}

/** Stops one after the other, each even if one before it failed. Throws an AggregateError. */
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
