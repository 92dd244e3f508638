import type { IncomingMessage } from 'node:http';
import { describe, expect, it } from 'vitest';
import { requestIdOf } from './request-id.ts';

const idFor = (given: unknown) => requestIdOf({ headers: { 'x-request-id': given } } as unknown as IncomingMessage);
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

describe('the request id', () => {
  it.each(['a', '0', 'A.b_c-9', 'x'.repeat(128)])('is the client’s own when it is acceptable: %j', (given) => {
    expect(idFor(given)).toBe(given);
  });

  it.each([undefined, '', ' ', 'x'.repeat(129), 'a b', 'a,b', 'a, b', 'a\nb', 'é', 'a/b', 'a"b', '{}', ['a', 'b']])(
    'is a new UUID instead of %j',
    (given) => {
      expect(idFor(given)).toMatch(UUID);
    },
  );

  it('is another for each request', () => {
    expect(idFor(undefined)).not.toBe(idFor(undefined));
  });
});
