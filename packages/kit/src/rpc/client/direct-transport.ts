import { create, type MessageShape } from '@bufbuild/protobuf';
import { Code, ConnectError, type Transport } from '@connectrpc/connect';
import { toUnknownOutcome } from '../../errors/errors.ts';
import type { Logger } from '../../log/logger.ts';
import { clientTimeoutMs, type HeaderSource, runCall, toResponse } from '../call.ts';
import { isRead, methodPath, REQUEST_ID_HEADER, type RpcRoute } from '../route.ts';
import { UnaryContext } from '../server/unary-context.ts';
import { bindMethods } from '../server/unary-method.ts';

/**
 * A transport that calls the handlers of this process. Nothing is serialised: caller and handler
 * share messages, and neither may change them. Errors, deadlines and cancellation are those of the
 * wire; sizes are unlimited.
 */
export function createDirectTransport(routes: readonly RpcRoute[], logger: Logger): Transport {
  const methods = bindMethods(routes, logger, { isDirect: true });
  return {
    async unary(method, signal, timeoutMs, header, input) {
      const path = methodPath(method);
      const bound = methods.get(path);
      if (!bound) throw new ConnectError(`${path} is not implemented`, Code.Unimplemented);
      const message = create(method.input, input);
      const limits = { signal, timeoutMs: clientTimeoutMs(timeoutMs) };
      const context = new UnaryContext(bound.method, path, header, limits.timeoutMs);
      let isInvoked = false;
      const invoke = () => {
        isInvoked = true;
        return bound.invoke(message, context, requestIdOf(header));
      };
      const output = await runCall(limits, context, invoke).catch((err: unknown) => {
        throw isInvoked && !isRead(method) ? toUnknownOutcome(err) : err;
      });
      return toResponse(method, output as MessageShape<typeof method.output>, context.setHeaders);
    },
    stream: () => Promise.reject(new ConnectError('services have no streaming methods', Code.Unimplemented)),
  };
}

function requestIdOf(header: HeaderSource): string {
  if (header === undefined) return '';
  if (header instanceof Headers || Array.isArray(header)) return new Headers(header).get(REQUEST_ID_HEADER) ?? '';
  return (header as Record<string, string>)[REQUEST_ID_HEADER] ?? '';
}
