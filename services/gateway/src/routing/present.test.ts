import { expect, it } from 'vitest';
import { z } from 'zod';
import { createPresenter } from './present.ts';

it('leaves JSON of clients as it is, whatever its names are', () => {
  const schema = z.object({ claims: z.record(z.string(), z.unknown()), keys: z.array(z.looseObject({ kty: z.string() })) });
  const given = { $typeName: 'google.protobuf.Timestamp', kty: 'RSA' };
  const record = { claims: given, keys: [given] };
  expect(createPresenter(schema)(record)).toEqual(record);
});
