import { expect, it } from 'vitest';
import { type Actor, formatActor, originFrom } from './actor.ts';

const ID = '01900000-0000-7000-8000-000000000001';
const SERVICE = { kind: 'service', credentialId: undefined, address: undefined };

it.each<Actor>([
  { kind: 'api_key', credentialId: ID, address: '203.0.113.7' },
  { kind: 'session', credentialId: ID, address: undefined },
  { kind: 'anonymous', credentialId: undefined, address: '2001:db8::1' },
])('an actor survives its header: %o', (actor) => {
  expect(originFrom(formatActor(actor), 'request-1')).toEqual({ ...actor, requestId: 'request-1' });
});

it('an address is sent without its zone', () => {
  expect(formatActor({ kind: 'session', credentialId: ID, address: 'fe80::1%eth0' })).toBe(`session ${ID} fe80::1`);
});

it.each([
  undefined,
  null,
  '',
  `session ${ID}`,
  `session ${ID} 203.0.113.7 more`,
  `session not-an-id 203.0.113.7`,
  `session ${ID} 999.0.113.7`,
  `operator ${ID} 203.0.113.7`,
  `constructor ${ID} 203.0.113.7`,
  `session ${'a'.repeat(10_000)} -`,
])('an invalid header means a service: %o', (text) => {
  expect(originFrom(text, '')).toEqual({ ...SERVICE, requestId: undefined });
});

it.each(['a b', 'a'.repeat(129), 'a\0', 'ä'])('an invalid request id is dropped: %o', (requestId) => {
  expect(originFrom('', requestId).requestId).toBeUndefined();
});
