import { expect, it } from 'vitest';
import { memoryLogger } from '../testing/memory-logger.ts';
import { logReadiness } from './readiness-log.ts';

it('says each reason why a service is not ready once, and when it is ready again', async () => {
  const { logger, lines } = memoryLogger();
  let reason: string | undefined;
  const checkReady = logReadiness(async () => {
    if (reason !== undefined) throw new Error(reason);
  }, logger);
  await checkReady();
  expect(lines).toEqual([]);
  for (reason of ['no schema', 'no schema', 'no database']) await expect(checkReady()).rejects.toThrow(reason);
  reason = undefined;
  await checkReady();
  await checkReady();
  reason = 'no database';
  await expect(checkReady()).rejects.toThrow(reason);
  expect(lines).toMatchObject([
    { level: 40, msg: 'not ready', err: { message: 'no schema' } },
    { level: 40, msg: 'not ready', err: { message: 'no database' } },
    { level: 30, msg: 'ready again' },
    { level: 40, msg: 'not ready', err: { message: 'no database' } },
  ]);
});
