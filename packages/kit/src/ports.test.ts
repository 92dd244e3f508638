import { expect, it } from 'vitest';
import { checkPorts, type TakenPort } from './ports.ts';

const at = (name: string, host: string, port: number | undefined): TakenPort => ({ name, host, port });
const check =
  (...taken: TakenPort[]) =>
  () =>
    checkPorts(taken);

it('a port may be taken once on each address, and on all of them only by itself', () => {
  const both = 'A and B must differ, and both are 80';
  expect(check(at('A', '127.0.0.1', 80), at('B', '127.0.0.1', 80))).toThrow(both);
  expect(check(at('A', '0.0.0.0', 80), at('B', '127.0.0.1', 80))).toThrow(both);
  expect(check(at('A', '10.0.0.1', 80), at('B', '::', 80))).toThrow(both);
  expect(check(at('A', '10.0.0.1', 80), at('B', '10.0.0.2', 80))).not.toThrow();
  expect(check(at('A', '::', 80), at('B', '::', 81))).not.toThrow();
});

it('ports that the system chooses, or that are not taken, are never the same', () => {
  expect(check(at('A', '::', 0), at('B', '::', 0), at('C', '::', undefined), at('D', '::', undefined))).not.toThrow();
});
