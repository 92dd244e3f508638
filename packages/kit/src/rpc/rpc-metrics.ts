import { Code, ConnectError } from '@connectrpc/connect';
import { Counter, Histogram, type Observe } from '../metrics/instrument.ts';
import type { CredentialCheck } from './credentials.ts';
import type { NoteRefusal } from './refusal-log.ts';

/** Bounds of calls, in seconds: most take a few milliseconds, and those that wait for a database that is away end at 2.5 and 4.5 s. */
const BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
/** Bounds of bodies, which have minutes. */
const BODY_BUCKETS = [0.01, 0.05, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 180, 600];

const labels = ['service', 'method', 'code'];

export const rpcServed = new Histogram({
  name: 'latchkey_rpc_server_duration_seconds',
  help: 'Time that calls took here, by service, method and code; ok for those that succeeded.',
  labels,
  buckets: BUCKETS,
});

export const rpcCalled = new Histogram({
  name: 'latchkey_rpc_client_duration_seconds',
  help: 'Time that calls of other services took as this process saw it.',
  labels,
  buckets: BUCKETS,
});

export const bodiesServed = new Histogram({
  name: 'latchkey_body_duration_seconds',
  help: 'Time that requests for bodies that are no messages took here, by route and code: uploads and downloads.',
  labels: ['route', 'code'],
  buckets: BODY_BUCKETS,
});

const credentialRefusals = new Counter({
  name: 'latchkey_rpc_credential_refusals_total',
  help: 'Calls refused for want of a service credential.',
});

/** Counts the calls that are refused before anything is done for them, which no other metric has. */
export const overloadRefusals = new Counter({
  name: 'latchkey_rpc_overload_refusals_total',
  help: 'Calls and bodies refused as there were as many under way as there may be (CALLS_AT_ONCE).',
});

/** The code of a call that failed as metrics and spans have it, such as `not_found`. */
export function codeName(err: unknown): string {
  const { code } = ConnectError.from(err);
  return (Code[code] ?? 'Unknown').replace(/(?<=[a-z])[A-Z]/g, (letter) => `_${letter}`).toLowerCase();
}

/** Takes how long calls of one method take; undefined while nobody measures. */
export interface CallObserver {
  readonly ok: Observe;
  failed(seconds: number, code: string): void;
}

/** What observes the calls of a method. */
export function observerOf(histogram: Histogram, service: string, method: string): CallObserver | undefined {
  const ok = histogram.child(service, method, 'ok');
  return ok && { ok, failed: (seconds, code) => histogram.observe(seconds, service, method, code) };
}

/** A check that counts whom it refuses, and notes it. */
export function countRefusals(check: CredentialCheck, note: NoteRefusal): CredentialCheck {
  return (authorization, remoteAddress) => {
    const isRight = check(authorization);
    if (!isRight) {
      credentialRefusals.add(1);
      note(remoteAddress);
    }
    return isRight;
  };
}
