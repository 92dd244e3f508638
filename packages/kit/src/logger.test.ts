import { expect, it } from 'vitest';
import { memoryLogger } from './testing/memory-logger.ts';

it('writes facts as they are', () => {
  const { logger, lines } = memoryLogger();
  const facts = { requestId: 'r', n: 1, nothing: null, list: [1, { a: 2 }], at: new Date(0), deep: { a: { b: 'c' } } };
  logger.info(facts, 'hello');
  expect(lines).toMatchObject([{ level: 30, service: 'test', msg: 'hello', ...facts, at: '1970-01-01T00:00:00.000Z' }]);
});

it('keeps secrets out at any depth, in errors and lists too', () => {
  const { logger, lines } = memoryLogger();
  const cause = Object.assign(new Error('inner'), { apiKey: 'swordfish' });
  const err = Object.assign(new Error('outer', { cause }), { config: { headers: { authorization: 'swordfish' } } });
  const command = { name: 'hello', args: ['3', 'AUTH', 'default', 'swordfish'] };
  const refused = Object.assign(new Error('WRONGPASS'), { command });
  logger.warn({ err: refused }, 'redis is unreachable');
  expect(lines.splice(0)).toMatchObject([{ err: { command: { name: 'hello', args: '[redacted]' } } }]);
  const facts = { token: 'swordfish', req: { headers: { cookie: 'swordfish', host: 'h' } }, list: [{ password: 'swordfish' }] };
  logger.error({ ...facts, err, other: err, many: new AggregateError([cause]) }, 'failed');
  logger.error(err);
  expect(JSON.stringify(lines)).not.toContain('swordfish');
  expect(lines[0]).toMatchObject({
    token: '[redacted]',
    req: { headers: { host: 'h' } },
    err: { type: 'Error' },
    other: { type: 'Error' },
  });
  expect(lines[1]).toMatchObject({ msg: 'outer', err: { stack: expect.stringContaining('caused by: Error: inner') } });
  expect(facts.req.headers.cookie).toBe('swordfish');
});

const REDACTED_NAMES = [
  'authorization',
  'cookie',
  'set-cookie',
  'x-csrf-token',
  'password',
  'token',
  'csrfToken',
  'secret',
  'plaintextKey',
  'socketKey',
  'httpKey',
  'apiKey',
  'sessionToken',
  'args',
];

it.each(REDACTED_NAMES)('redacts %s in facts, below them, in lists and in errors', (name) => {
  const { logger, lines } = memoryLogger();
  const facts = { [name]: 'swordfish' };
  logger.info({ ...facts, below: { facts }, list: [facts], err: Object.assign(new Error('x'), facts) }, 'line');
  const redacted = { [name]: '[redacted]' };
  expect(lines).toMatchObject([
    { ...redacted, below: { facts: redacted }, list: [redacted], err: { message: 'x', ...redacted } },
  ]);
});

it('leaves out what is too deep to be searched, also what has no end', () => {
  const { logger, lines } = memoryLogger();
  const loop: Record<string, unknown> = { token: 'swordfish' };
  loop.self = loop;
  const err = new Error('x');
  Object.assign(err, { context: { err } });
  logger.info({ loop, err, a: { b: { c: { d: { e: { f: { password: 'swordfish' } } } } } } }, 'deep');
  expect(JSON.stringify(lines)).not.toContain('swordfish');
});
