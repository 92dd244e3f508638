import { Readable } from 'node:stream';
import { expect, it } from 'vitest';
import { digestObject } from './digest-object.ts';

it('ends with the reason of its signal while an object hangs', async () => {
  const controller = new AbortController();
  const body = new Readable({ read: () => controller.abort(new Error('No bytes')) });
  const digesting = digestObject({ read: async () => body }, 'key', controller.signal, () => undefined);
  await expect(digesting).rejects.toThrow('No bytes');
});
