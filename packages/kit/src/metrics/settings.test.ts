import { describe, expect, it } from 'vitest';
import { readMetricsConfig } from './settings.ts';

const TOKEN = 'a-token-that-has-thirty-two-characters';

function problemsOf(env: NodeJS.ProcessEnv): string[] {
  try {
    readMetricsConfig({ METRICS_PORT: '9464', ...env });
  } catch (err) {
    return (err as Error).message.split('\n');
  }
  return [];
}

describe('METRICS_TOKEN', () => {
  it.each([
    ['blanks', ' '.repeat(40)],
    ['a blank', `${TOKEN} ${TOKEN}`],
    ['the end of a line', `${TOKEN}\n`],
    ['letters that are not ASCII', 'é'.repeat(40)],
  ])('is refused with %s, which no header carries', (_what, METRICS_TOKEN) => {
    expect(problemsOf({ METRICS_TOKEN })).toEqual(['METRICS_TOKEN must be of printable ASCII characters, without blanks']);
  });

  it.each(['first', 'second'])('is refused where it is the %s of the service credentials, which open more', (place) => {
    const other = 'another-secret-of-thirty-two-characters';
    const SERVICE_CREDENTIALS = place === 'first' ? `${TOKEN},${other}` : `${other}, ${TOKEN}`;
    expect(problemsOf({ METRICS_TOKEN: TOKEN, SERVICE_CREDENTIALS })).toEqual([
      'METRICS_TOKEN must be none of SERVICE_CREDENTIALS',
    ]);
    expect(problemsOf({ METRICS_PORT: 'x', METRICS_TOKEN: TOKEN, SERVICE_CREDENTIALS })).toHaveLength(2);
    expect(problemsOf({ METRICS_TOKEN: TOKEN, SERVICE_CREDENTIALS: other })).toEqual([]);
  });
});
