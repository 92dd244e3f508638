import type { DescMethodUnary, Message } from '@bufbuild/protobuf';
import type { ContextValues, Interceptor, UnaryRequest, UnaryResponse } from '@connectrpc/connect';

/** One unary call as interceptors see it. */
export interface InterceptedCall {
  readonly method: DescMethodUnary;
  readonly url: string;
  readonly signal: AbortSignal;
  readonly header: Headers;
  readonly contextValues: ContextValues;
  readonly message: Message;
}

/** Runs interceptors around a unary call the way connect-node does: the first is outermost, at both ends. */
export async function intercept(
  interceptors: readonly Interceptor[],
  call: InterceptedCall,
  innermost: (request: UnaryRequest) => Promise<UnaryResponse>,
): Promise<UnaryResponse> {
  const request: UnaryRequest = { ...call, stream: false, service: call.method.parent, requestMethod: 'POST' };
  const run = interceptors.reduceRight((next, interceptor) => interceptor(next), innermost as ReturnType<Interceptor>);
  return (await run(request)) as UnaryResponse;
}
