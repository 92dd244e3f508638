import { AsyncLocalStorage } from 'node:async_hooks';
import { activeTracer } from './tracing/tracer.ts';

/** The request that something is done for, in a form that goes with jobs and rows to whoever does the rest of it later. */
export interface CallOrigin {
  readonly requestId?: string;
  /** W3C Trace Context, where the request is traced. */
  readonly traceparent?: string;
}

const requestIds = new AsyncLocalStorage<string>();

/** Runs something on behalf of a request, so that what is queued meanwhile knows of it. */
export function onBehalfOf<T>(requestId: string, run: () => T): T {
  return requestId === '' ? run() : requestIds.run(requestId, run);
}

/** What log lines say of where they belong: nothing outside of what changes something for a request, and of what is traced. */
export function lineFacts(): object | undefined {
  const requestId = requestIds.getStore();
  const trace = activeTracer()?.facts();
  return requestId === undefined && !trace ? undefined : { ...(requestId !== undefined && { requestId }), ...trace };
}

/** The request that this is done for; undefined for none. */
export function currentOrigin(): CallOrigin | undefined {
  const requestId = requestIds.getStore();
  const traceparent = activeTracer()?.traceparent();
  if (requestId === undefined && traceparent === undefined) return undefined;
  return { ...(requestId !== undefined && { requestId }), ...(traceparent !== undefined && { traceparent }) };
}
