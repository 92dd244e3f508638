import { Code, ConnectError } from '@connectrpc/connect';
import { ErrorInfoSchema } from '@latchkey/proto/latchkey/rpc/v1/error_pb';
import { expect, it } from 'vitest';
import { DomainError, defineErrors, ERROR_KINDS, type ErrorKind, fromConnectError, toConnectError } from './errors.ts';

it('a catalogue creates errors with the code and status of their kind, unless an entry names a code', () => {
  const errors = defineErrors({
    key_unknown: { kind: 'unauthenticated', message: 'The key is not valid' },
    too_many: { kind: 'rate_limited', code: 'slow_down', message: 'Too many' },
  });
  const expected = { reason: 'key_unknown', kind: 'unauthenticated', code: 'unauth', httpStatus: 401, metadata: {} };
  expect(errors.key_unknown()).toMatchObject({ ...expected, message: 'The key is not valid' });
  const limit = { policy: 'mails', limit: 5, windowMs: 3_500, retryMs: 0 };
  const metadata = { policy: 'mails', limit: '5', windowSeconds: '4', remaining: '0', retryAfterSeconds: '1' };
  expect(errors.too_many(limit)).toMatchObject({ code: 'slow_down', httpStatus: 429, metadata });
});

it.each(Object.keys(ERROR_KINDS) as ErrorKind[])('an error of the kind %s survives the wire', (kind) => {
  const details = kind === 'invalid' ? [{ path: 'name', message: 'must be 6 to 32 characters' }] : [];
  const sent = new DomainError('some_reason', { kind, message: 'Some message' }, { a: 'b' }).withDetails(...details);
  const wire = toConnectError(sent);
  expect(wire.code).toBe(ERROR_KINDS[kind].connectCode);
  expect(fromConnectError(wire)).toEqual(sent);
  expect(fromConnectError(sent)).toBe(sent);
});

it('only an unreachable callee, or one that rejects our credential, means that a dependency is unavailable', () => {
  for (const code of [Code.Unavailable, Code.DeadlineExceeded, Code.Unauthenticated]) {
    expect(fromConnectError(new ConnectError('x', code))).toMatchObject({ reason: 'dependency_unavailable', httpStatus: 503 });
  }
  for (const code of [Code.NotFound, Code.Internal, Code.Canceled, Code.ResourceExhausted]) {
    expect(fromConnectError(new ConnectError('x', code))).toBeUndefined();
  }
  const value = { reason: 'r', kind: 'toString', code: '', metadata: {} };
  const unknownKind = new ConnectError('x', Code.Internal, undefined, [{ desc: ErrorInfoSchema, value }]);
  for (const other of [unknownKind, new Error('x'), 'x', undefined]) expect(fromConnectError(other)).toBeUndefined();
});
