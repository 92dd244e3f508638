import { memoryLogger } from '@latchkey/kit/testing/memory-logger';
import { eventually } from '@latchkey/testkit/eventually';
import { describe, expect, it } from 'vitest';
import { useTestGateway } from '../testing/test-gateway.ts';

/** How long an answer stands. */
const AGE_MS = 250;

const { logger, lines } = memoryLogger();
let checks = 0;
let isReady = true;
const gateway = useTestGateway({
  logger,
  checkReady: async () => {
    checks += 1;
    if (!isReady) throw new Error('the database is down');
  },
});

const probe = async (path: string) => {
  const response = await fetch(gateway.baseUrl + path);
  return { status: response.status, text: await response.text() };
};

describe('the readiness probe', () => {
  it('asks what is behind it once for all who ask at the same time, as nobody counts them', async () => {
    const [before, startedAt] = [checks, performance.now()];
    const answers = await Promise.all(Array.from({ length: 50 }, () => probe('/readyz')));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    expect(checks - before).toBeLessThanOrEqual(2 + (performance.now() - startedAt) / AGE_MS);
  });

  it('follows what is behind it soon, and says nothing of the reason, which the log says once', async () => {
    isReady = false;
    const before = checks;
    await eventually(async () => {
      await probe('/readyz');
      expect(checks - before).toBeGreaterThan(3);
    });
    const answer = await eventually(async () => {
      const found = await probe('/readyz');
      expect(found.status).toBe(503);
      return found;
    });
    expect(answer.text).toBe('{"status":"not ready"}');
    isReady = true;
    await eventually(async () => (await probe('/readyz')).status === 200);
    const told = lines.filter(({ msg }) => msg === 'not ready' || msg === 'ready again');
    expect(told).toMatchObject([
      { level: 40, err: { message: 'the database is down' } },
      { level: 30, msg: 'ready again' },
    ]);
  });
});

describe('the liveness probe', () => {
  it('asks nobody', async () => {
    const before = checks;
    isReady = false;
    expect((await probe('/healthz')).status).toBe(200);
    isReady = true;
    expect(checks).toBe(before);
  });
});
