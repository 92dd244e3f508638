import type { DescMethodUnary } from '@bufbuild/protobuf';
import { Code, ConnectError } from '@connectrpc/connect';
import { Counter, Histogram } from '../telemetry/metrics.ts';
import { activeTracer, failSpan, type Span, type SpanOptions } from '../telemetry/tracing.ts';
import { methodPath } from './route.ts';

const labels = ['service', 'method', 'code'];
/** Most calls take milliseconds. Waits for an unreachable database end at 2.5 and 4.5 s. */
const CALL_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

export const rpcServed = new Histogram({
  name: 'latchkey_rpc_server_duration_seconds',
  help: 'Time that calls took here, by service, method and code; ok for those that succeeded.',
  labels,
  buckets: CALL_BUCKETS,
});

export const rpcCalled = new Histogram({
  name: 'latchkey_rpc_client_duration_seconds',
  help: 'Time that calls of other services took as this process saw it.',
  labels,
  buckets: CALL_BUCKETS,
});

export const bodiesServed = new Histogram({
  name: 'latchkey_body_duration_seconds',
  help: 'Time that uploads and downloads took here, by route and code.',
  labels: ['route', 'code'],
  buckets: [0.01, 0.05, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 180, 600],
});

export const credentialRejections = new Counter({
  name: 'latchkey_rpc_credential_rejections_total',
  help: 'Calls rejected for lack of a valid service credential.',
});

export const overloadRejections = new Counter({
  name: 'latchkey_rpc_overload_rejections_total',
  help: 'Calls and bodies rejected because too many were under way.',
});

/** The code of a failed call in metrics and spans, such as `not_found`. */
export function codeName(err: unknown): string {
  const { code } = ConnectError.from(err);
  return (Code[code] ?? 'Unknown').replace(/(?<=[a-z])[A-Z]/g, (letter) => `_${letter}`).toLowerCase();
}

export type CallTimer = (seconds: number, code: string) => void;

/** A timer for a method; undefined while metrics are off. */
export function callTimer(histogram: Histogram, { name, parent }: DescMethodUnary): CallTimer | undefined {
  const ok = histogram.child(parent.typeName, name, 'ok');
  return ok && ((seconds, code) => (code === 'ok' ? ok(seconds) : histogram.observe(seconds, parent.typeName, name, code)));
}

/** Options of the spans at both ends of a call. */
export function rpcSpan(method: DescMethodUnary): Omit<SpanOptions, 'kind'> {
  const name = methodPath(method).slice(1);
  return { name, attributes: { 'rpc.system.name': 'connectrpc', 'rpc.method': name } };
}

/** Measures a call and runs it in a span, if given. */
export async function observed<T>(timer: CallTimer | undefined, span: Span | undefined, run: () => Promise<T>): Promise<T> {
  const startedAt = performance.now();
  let code = 'ok';
  try {
    return (await (span ? activeTracer()?.within(span, run) : run())) as T;
  } catch (err) {
    code = codeName(err);
    if (span) failSpan(span, code);
    throw err;
  } finally {
    timer?.((performance.now() - startedAt) / 1_000, code);
    span?.end();
  }
}
