import { expect, it, onTestFinished, vi } from 'vitest';
import { memoryLogger } from '../../testing/memory-logger.ts';
import { createRejectionLog } from './rejection-log.ts';

it('logs each of at most 100 rejected addresses once a minute', () => {
  const { logger, lines } = memoryLogger();
  const clock = vi.spyOn(performance, 'now').mockReturnValue(0);
  onTestFinished(() => clock.mockRestore());
  const log = createRejectionLog(logger, 'rejected');
  log('::ffff:10.0.0.1', { reason: 'no certificate' });
  for (let i = 0; i < 200; i += 1) log(`10.0.0.${i}`);
  expect(lines[0]).toMatchObject({ level: 40, address: '10.0.0.1', reason: 'no certificate', msg: 'rejected' });
  expect(new Set(lines.map(({ address }) => address)).size).toBe(100);
  expect(lines).toHaveLength(100);
  clock.mockReturnValue(60_000);
  log('10.0.0.1');
  expect(lines).toHaveLength(101);
});
