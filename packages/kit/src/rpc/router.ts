import type { DescMethod, Message } from '@bufbuild/protobuf';
import type { ConnectRouter, HandlerContext, MethodImpl } from '@connectrpc/connect';
import type { Logger } from '../logger.ts';
import { type BoundMethod, methodPath, refuse } from './bound-method.ts';
import { timeLeftMs, withinBounds } from './call-bounds.ts';
import { CallCounter } from './call-counter.ts';
import { DEADLINE_MS_MAX, REQUEST_ID_HEADER, type RpcRoute } from './route.ts';

/** Registers routes with connect-node's router so that its unary calls run the same bound methods as the lean path. */
export function boundRouter(
  router: ConnectRouter,
  routes: readonly RpcRoute[],
  methods: ReadonlyMap<string, BoundMethod>,
  logger: Logger,
  calls = new CallCounter(),
): void {
  for (const { service, impl } of routes) {
    for (const method of service.methods) {
      const bound = methods.get(methodPath(method));
      const handler = bound ? boundHandler(bound, calls) : boundStream(method, impl, logger);
      if (handler) router.rpc(method, handler as MethodImpl<DescMethod>);
    }
  }
}

const requestIdOf = (context: HandlerContext) => context.requestHeader.get(REQUEST_ID_HEADER) ?? '';

/** connect-node leaves it to the handler to notice its deadline, and has none where the caller gave none. */
function boundHandler(bound: BoundMethod, calls: CallCounter) {
  return (input: Message, context: HandlerContext) => {
    const timeoutMs = Math.min(context.timeoutMs() ?? DEADLINE_MS_MAX, DEADLINE_MS_MAX);
    const deadlineAt = performance.now() + timeoutMs;
    const call = new AbortController();
    const bounded = { ...context, signal: call.signal, timeoutMs: () => timeLeftMs(deadlineAt) };
    const run = () => bound.invoke(input, bounded, requestIdOf(context));
    calls.enter();
    return withinBounds({ signal: context.signal, timeoutMs }, call, run).finally(() => calls.leave());
  };
}

type StreamHandler = (input: unknown, context: HandlerContext) => AsyncIterable<Message>;

/** A streaming method whose errors are masked and logged like those of the others. It has no deadline but its caller's. */
function boundStream(method: DescMethod, impl: RpcRoute['impl'], logger: Logger): StreamHandler | undefined {
  const handler = (impl[method.localName] as StreamHandler | undefined)?.bind(impl);
  if (!handler) return undefined;
  return async function* stream(input, context) {
    try {
      yield* handler(input, context);
    } catch (err) {
      throw refuse(err, context, logger, { requestId: requestIdOf(context), rpc: methodPath(method).slice(1) });
    }
  };
}
