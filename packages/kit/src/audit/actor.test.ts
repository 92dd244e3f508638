import { expect, it } from 'vitest';
import { formatActor, originFrom, parseActor } from './actor.ts';

const ID = '01900000-0000-7000-8000-000000000001';
const NOBODY = { kind: 'service', credentialId: undefined, address: undefined };

it.each([
  [{ kind: 'api_key', credentialId: ID, address: '203.0.113.7' }],
  [{ kind: 'session', credentialId: ID, address: '2001:db8::1' }],
  [{ kind: 'session', credentialId: ID, address: undefined }],
  [{ kind: 'anonymous', credentialId: undefined, address: '203.0.113.7' }],
] as const)('says of whom a call is made what the other end understands: %o', (actor) => {
  expect(parseActor(formatActor(actor))).toEqual(actor);
});

it('leaves out the zone of an address, which means nothing elsewhere', () => {
  expect(formatActor({ kind: 'session', credentialId: ID, address: 'fe80::1%eth0' })).toBe(`session ${ID} fe80::1`);
});

it.each([
  undefined,
  null,
  '',
  'session',
  `session ${ID}`,
  `session ${ID} 203.0.113.7 more`,
  `session  ${ID} 203.0.113.7`,
  `session not-an-id 203.0.113.7`,
  `session ${ID} 999.0.113.7`,
  `session ${ID} example.com`,
  `operator ${ID} 203.0.113.7`,
  `service ${ID} 203.0.113.7`,
  `constructor ${ID} 203.0.113.7`,
  `session ${'a'.repeat(10_000)} -`,
])('takes a header that names nobody for a service that did not say: %o', (text) => {
  expect(parseActor(text)).toEqual(NOBODY);
});

it.each(['', 'a b', 'a'.repeat(129), 'a\0', 'ä'])('keeps no request id that could be none: %o', (requestId) => {
  expect(originFrom('', requestId).requestId).toBeUndefined();
});

it('keeps the request id of a call', () => {
  expect(originFrom('', 'request-1').requestId).toBe('request-1');
});
