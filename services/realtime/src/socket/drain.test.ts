import { expect, it } from 'vitest';
import { CLOSE, type Close } from './close-code.ts';
import { drain } from './drain.ts';

it('spreads the closing of sockets with 1001 over time', async () => {
  const closedAt: number[] = [];
  const open = new Set(Array.from({ length: 200 }, () => ({ close, cut: () => expect.unreachable() })));
  function close(this: { close: typeof close; cut: () => never }, reason: Close) {
    expect(reason).toBe(CLOSE.goingAway);
    closedAt.push(performance.now());
    open.delete(this);
  }
  await drain(() => open);
  expect(closedAt).toHaveLength(200);
  for (let i = 0; i + 50 < closedAt.length; i += 1) expect((closedAt[i + 50] ?? 0) - (closedAt[i] ?? 0)).toBeGreaterThan(15);
});
