import type { FaultResult } from './play-fault.ts';
import { isLost, succeeded, tellFailures } from './samples.ts';

const HEAD = [
  'fault',
  'requests',
  'failed',
  'what clients saw',
  'longest answer',
  'last failure after the fault',
  'after its end',
  'latest event',
  'breaches',
];

/** A row of the table, in Markdown. */
export function toRow({ name, samples, lastFailureMs, unhealthyMs, latestEventMs, breaches }: FaultResult): string {
  const failed = samples.filter((sample) => !succeeded(sample));
  const longestMs = Math.max(...samples.filter((sample) => !isLost(sample)).map(({ startedAt, endedAt }) => endedAt - startedAt));
  const cells = [name, samples.length, failed.length, tellFailures(failed) || 'nothing', seconds(longestMs)];
  const times = failed.length === 0 ? ['–', '–'] : [seconds(lastFailureMs), seconds(unhealthyMs)];
  return `| ${[...cells, ...times, seconds(latestEventMs), breaches.join('; ') || 'none'].join(' | ')} |`;
}

/** What stands above the rows. */
export const tableHead = (): string => `| ${HEAD.join(' | ')} |\n|${'---|'.repeat(HEAD.length)}`;

const seconds = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`;
