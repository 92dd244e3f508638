import { Code, ConnectError } from '@connectrpc/connect';
import { ErrorInfoSchema } from '@latchkey/proto/latchkey/rpc/v1/error_pb';
import { describe, expect, it } from 'vitest';
import { DomainError, defineErrors, ERROR_KINDS, type ErrorKind, fromConnectError, toConnectError } from './errors.ts';

const errors = defineErrors({
  key_unknown: { kind: 'unauthenticated', message: 'The key is not valid' },
  too_many: { kind: 'rate_limited', code: 'slow_down', message: 'Too many' },
});

describe('a catalogue', () => {
  it('makes errors with the code and status of their kind', () => {
    const err = errors.key_unknown();
    expect(err).toBeInstanceOf(DomainError);
    expect(err).toMatchObject({ reason: 'key_unknown', kind: 'unauthenticated', code: 'unauth', httpStatus: 401, metadata: {} });
    expect(err.message).toBe('The key is not valid');
  });

  it('lets an entry name a code of its own, and a throw add facts', () => {
    expect(errors.too_many({ seconds: '3' })).toMatchObject({ code: 'slow_down', httpStatus: 429, metadata: { seconds: '3' } });
  });
});

describe('an error that travels', () => {
  it.each(Object.keys(ERROR_KINDS) as ErrorKind[])('of the kind %s arrives as it left', (kind) => {
    const sent = new DomainError('some_reason', { kind, message: 'Some message' }, { a: 'b' });
    const wire = toConnectError(sent);
    expect(wire.code).toBe(ERROR_KINDS[kind].connectCode);
    const arrived = fromConnectError(wire);
    expect(arrived).toEqual(sent);
    expect(arrived?.httpStatus).toBe(ERROR_KINDS[kind].httpStatus);
  });

  it('arrives with the details that it was thrown with', () => {
    const detail = { path: 'name', message: 'must be 6 to 32 characters' };
    const sent = new DomainError('some_reason', { kind: 'invalid', message: 'Some message' }).withDetails(detail);
    expect(fromConnectError(toConnectError(sent))?.details).toEqual([detail]);
  });

  it('is itself where it never left', () => {
    const err = errors.key_unknown();
    expect(fromConnectError(err)).toBe(err);
  });
});

describe('a failure that is no domain error', () => {
  it('means that the callee could not be asked only if the transport says so, or the credential of this service was refused', () => {
    for (const code of [Code.Unavailable, Code.DeadlineExceeded, Code.Unauthenticated]) {
      expect(fromConnectError(new ConnectError('x', code))).toMatchObject({ reason: 'dependency_unavailable', httpStatus: 503 });
    }
    for (const code of [Code.NotFound, Code.Internal, Code.Canceled, Code.ResourceExhausted]) {
      expect(fromConnectError(new ConnectError('x', code))).toBeUndefined();
    }
    for (const other of [new Error('x'), 'x', undefined]) expect(fromConnectError(other)).toBeUndefined();
  });

  it('is one of a kind that this version does not know', () => {
    const value = { reason: 'r', kind: 'toString', code: '', metadata: {} };
    expect(fromConnectError(new ConnectError('x', Code.Internal, undefined, [{ desc: ErrorInfoSchema, value }]))).toBeUndefined();
  });
});
