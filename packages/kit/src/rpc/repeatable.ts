import { type CallOptions, createContextKey, createContextValues } from '@connectrpc/connect';

/** Whether a call may be sent again though its method has side effects. */
export const REPEATABLE = createContextKey(false, { description: 'may be sent again' });

/** Says of a call of a method with side effects that twice is as good as once, so that it is treated as a read where it gets no answer, or none soon. */
export function repeatable(options: CallOptions): CallOptions {
  return { ...options, contextValues: (options.contextValues ?? createContextValues()).set(REPEATABLE, true) };
}
