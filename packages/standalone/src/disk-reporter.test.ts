import { DiskFullError } from '@latchkey/embedded/disk-full';
import { expect, it } from 'vitest';
import { createDiskReporter } from './disk-reporter.ts';

it('says once a minute which disk is full, for each disk', () => {
  const lines: string[] = [];
  let now = 0;
  const { report } = createDiskReporter(
    (line) => lines.push(line),
    () => now,
  );
  for (; now < 125_000; now += 500) {
    report(new DiskFullError('/data/postgres', '/data'));
    report(new DiskFullError('/data/redis', '/data'));
    if (now > 60_000) report(new DiskFullError('/logs', '/'));
  }
  const data = 'The disk mounted on /data is full; it holds /data/postgres. Free some space: Latchkey tries again by itself.';
  const logs = 'The disk mounted on / is full; it holds /logs. Free some space: Latchkey tries again by itself.';
  expect(lines).toEqual([data, data, logs, data, logs]);
});
