import type { DescMethod, Message } from '@bufbuild/protobuf';
import type { ConnectRouter, HandlerContext, MethodImpl } from '@connectrpc/connect';
import { type BoundMethod, methodPath } from './bound-method.ts';
import { REQUEST_ID_HEADER, type RpcRoute } from './route.ts';

/** Registers routes with connect-node's router so that its unary calls run the same bound methods as the lean path. */
export function boundRouter(router: ConnectRouter, routes: readonly RpcRoute[], methods: ReadonlyMap<string, BoundMethod>): void {
  for (const { service, impl } of routes) {
    for (const method of service.methods) {
      const bound = methods.get(methodPath(method));
      const handler = bound ? boundHandler(bound) : impl[method.localName];
      if (handler) router.rpc(method, handler as MethodImpl<DescMethod>);
    }
  }
}

function boundHandler(bound: BoundMethod) {
  return (input: Message, context: HandlerContext) =>
    bound.invoke(input, context, context.requestHeader.get(REQUEST_ID_HEADER) ?? '');
}
