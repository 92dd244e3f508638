import type { Transport } from '@connectrpc/connect';

/** A call on its way: the method's name as the protocol has it, and the request. */
export interface Call {
  readonly method: string;
  // biome-ignore lint/suspicious/noExplicitAny: the request of whichever method it is.
  readonly request: any;
}

/** The same way to a service, on which calls may be held up, or fail with what is thrown. */
export function withTrouble(
  transport: Transport,
  trouble: (call: Call) => Promise<void> | void,
): { readonly transport: Transport } {
  return {
    transport: {
      ...transport,
      async unary(method, signal, timeoutMs, header, request, contextValues) {
        await trouble({ method: method.name, request });
        return transport.unary(method, signal, timeoutMs, header, request, contextValues);
      },
    },
  };
}
