import { createDecipheriv } from 'node:crypto';
import { expect, it, vi } from 'vitest';
import { createVault } from './vault.ts';

vi.mock('node:crypto', { spy: true });

it('decrypts a key once, however often it is opened, and never for another owner', () => {
  const vault = createVault('a deployment secret of 32 letters');
  const keys = Array.from({ length: 200 }, (_, i) => vault.create('socketKey', `application ${i}`));
  for (let round = 0; round < 3; round += 1) {
    keys.forEach(({ text, sealed }, i) => {
      expect(vault.open('socketKey', `application ${i}`, sealed.toString('hex'))).toBe(text);
    });
  }
  expect(createDecipheriv).toHaveBeenCalledTimes(200);
  const [first, second] = keys.map(({ sealed }) => sealed.toString('hex')) as [string, string];
  expect(() => vault.open('socketKey', 'application 1', first)).toThrow();
  expect(() => vault.open('httpKey', 'application 1', second)).toThrow();
});
