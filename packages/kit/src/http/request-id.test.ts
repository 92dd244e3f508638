import type { IncomingMessage } from 'node:http';
import { expect, it } from 'vitest';
import { requestIdOf } from './request-id.ts';

const idFor = (given: unknown) => requestIdOf({ headers: { 'x-request-id': given } } as unknown as IncomingMessage);
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

it.each(['a', '0', 'A.b_c-9', 'x'.repeat(128)])('accepts the request id %j', (given) => {
  expect(idFor(given)).toBe(given);
});

it.each([undefined, '', ' ', 'x'.repeat(129), 'a b', 'a,b', 'a\nb', 'é', 'a/b', '{}', ['a', 'b']])(
  'replaces the request id %j',
  (given) => {
    expect(idFor(given)).toMatch(UUID);
  },
);
