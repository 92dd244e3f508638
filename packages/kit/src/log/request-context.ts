import { AsyncLocalStorage } from 'node:async_hooks';
import { activeTracer } from '../telemetry/tracing.ts';

/** The request that a job or a row belongs to, in a form that is stored with it. */
export interface CallContext {
  readonly requestId?: string;
  readonly traceparent?: string;
}

const requestIds = new AsyncLocalStorage<string>();

/** Runs a function in the context of a request: its log lines and queued jobs name it. */
export function onBehalfOf<T>(requestId: string, run: () => T): T {
  return requestId === '' ? run() : requestIds.run(requestId, run);
}

export function lineFacts(): object | undefined {
  const requestId = requestIds.getStore();
  const trace = activeTracer()?.facts();
  return requestId === undefined && !trace ? undefined : { ...(requestId !== undefined && { requestId }), ...trace };
}

/** The current request; undefined outside of any. */
export function currentContext(): CallContext | undefined {
  const requestId = requestIds.getStore();
  const traceparent = activeTracer()?.traceparent();
  if (requestId === undefined && traceparent === undefined) return undefined;
  return { ...(requestId !== undefined && { requestId }), ...(traceparent !== undefined && { traceparent }) };
}
