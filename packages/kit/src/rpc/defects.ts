import { ConnectError, type Interceptor } from '@connectrpc/connect';
import type { Logger } from '../logger.ts';
import { internalError, methodPath } from './bound-method.ts';
import { canceled } from './call-bounds.ts';
import { REQUEST_ID_HEADER } from './route.ts';

/** What Node says of a request whose client went away while it was read. */
const CUT_OFF = new Set(['ECONNRESET', 'EPIPE', 'ERR_HTTP2_STREAM_ERROR', 'ERR_STREAM_DESTROYED', 'ERR_STREAM_PREMATURE_CLOSE']);

/** Logs what an interceptor failed with; connect-node masks it without a word. Clients that go away are no defect. */
export function logDefects(logger: Logger): Interceptor {
  return (next) => async (req) => {
    try {
      return await next(req);
    } catch (err) {
      if (err instanceof ConnectError) throw err;
      if (req.stream && CUT_OFF.has((err as NodeJS.ErrnoException).code ?? '')) throw canceled();
      const requestId = req.header.get(REQUEST_ID_HEADER) ?? '';
      logger.error({ requestId, rpc: methodPath(req.method).slice(1), err }, 'rpc failed');
      throw internalError();
    }
  };
}
