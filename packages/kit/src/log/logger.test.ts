import { expect, it } from 'vitest';
import { memoryLogger } from '../testing/memory-logger.ts';
import { createLineLog } from './logger.ts';

it('writes facts unchanged', () => {
  const { logger, lines } = memoryLogger();
  const facts = { requestId: 'r', n: 1, nothing: null, list: [1, { a: 2 }], at: new Date(0), deep: { a: { b: 'c' } } };
  logger.info(facts, 'hello');
  expect(lines).toMatchObject([{ level: 30, service: 'test', msg: 'hello', ...facts, at: '1970-01-01T00:00:00.000Z' }]);
});

it.each(
  'authorization cookie set-cookie x-csrf-token password token csrfToken secret plaintextKey socketKey httpKey apiKey sessionToken args'.split(
    ' ',
  ),
)('redacts %s in facts, below them, in lists and in errors', (name) => {
  const { logger, lines } = memoryLogger();
  const facts = { [name]: 'swordfish' };
  const cause = Object.assign(new Error('inner'), { context: facts });
  const err = Object.assign(new Error('outer', { cause }), facts);
  logger.info({ ...facts, below: { facts }, list: [facts], err, other: err, many: new AggregateError([cause]) }, 'line');
  logger.error(err);
  const redacted = { [name]: '[redacted]' };
  expect(lines).toMatchObject([
    { ...redacted, below: { facts: redacted }, list: [redacted], err: { type: 'Error', ...redacted }, other: redacted },
    { msg: 'outer', err: { ...redacted, stack: expect.stringContaining('caused by: Error: inner') } },
  ]);
  expect(JSON.stringify(lines)).not.toContain('swordfish');
  expect(facts[name]).toBe('swordfish');
});

it('omits what is nested too deep to search, also in circles', () => {
  const { logger, lines } = memoryLogger();
  const loop: Record<string, unknown> = { token: 'swordfish' };
  loop.self = loop;
  const err = new Error('x');
  Object.assign(err, { context: { err } });
  logger.info({ loop, err, a: { b: { c: { d: { e: { f: { password: 'swordfish' } } } } } } }, 'deep');
  expect(JSON.stringify(lines)).not.toContain('swordfish');
});

it('a line built by hand is the one that pino writes', () => {
  const { logger, lines } = memoryLogger();
  const facts = { requestId: 'a"\\\n', method: 'GET', route: undefined, status: 200, ms: 1.125 };
  logger.info(facts, 'a "line"');
  createLineLog(logger, 'info', 'a "line"')(facts);
  const [expected, line] = lines;
  expect(line).toEqual({ ...expected, time: expect.any(Number) });
  expect(Object.keys(line ?? {})).toEqual(Object.keys(expected ?? {}));
});

it('no line is built by hand below the level', () => {
  const { logger, lines } = memoryLogger();
  logger.level = 'info';
  createLineLog(logger, 'debug', 'line')({});
  expect(lines).toEqual([]);
});
