import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { canonicalIp, networkOf } from '@latchkey/kit/http/client-ip';
import { acquireAll, ConcurrencyLimit } from '@latchkey/kit/http/concurrency-limit';
import { waitForTurn } from '@latchkey/kit/http/response';
import type { HttpRoute } from '@latchkey/kit/rpc/server/http-route';
import { newId } from '@latchkey/kit/validation/id';
import { createShare } from '../../concurrency-share.ts';
import type { FilesContext } from '../../context.ts';
import { downloadsMax, downloadsOpen } from '../../files-metrics.ts';
import { errors, rejectUnavailable } from '../../proto-errors.ts';
import { type StoredFile, selectFileOfObject } from '../file/file.store.ts';
import { type ByteRange, objectKey } from '../object-store/object-store.ts';
import { toDomainError } from '../upload/upload-call.ts';
import { checkPreconditions, parseRange } from './conditional-request.ts';
import {
  bodyHeaders,
  fileHeaders,
  httpErrors,
  internal_error,
  ObjectSizeError,
  sendBody,
  sendError,
  validatorsOf,
} from './download-response.ts';
import { DOWNLOADS_PATH } from './download-url.ts';

export type DownloadHandler = ReturnType<typeof createDownloadHandler>;

const STALL_MS = 30_000;
/** Until a client over a limit may retry: the time in which the gateway closes a slow reader. */
const RETRY_MS = 10_000;
const ALLOWED_METHODS = ['GET', 'HEAD'];
const REJECTED_METHODS = ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];

/**
 * Serves files by the URLs that this service signed: GET and HEAD, ranges and preconditions as in
 * RFC 9110. A download may take any time, but stall only for `stallTimeoutMs`.
 *
 * @returns a handler of `/downloads/<token>`, which never rejects; `networkOf` names the network
 */
export function createDownloadHandler(ctx: FilesContext, stallTimeoutMs = STALL_MS) {
  const acquire = createDownloadQuota(ctx.limits.downloadsMax);
  const respond = async (req: IncomingMessage, res: ServerResponse, requestId: string, clientNetwork: string): Promise<void> => {
    const file = await findFile(ctx, req.url ?? '');
    const [validators, headers] = [validatorsOf(file), fileHeaders(file, requestId)];
    const status = checkPreconditions(req.headers, validators);
    if (status === 412) return sendError(res, httpErrors.preconditionFailed, requestId, headers);
    if (status === 304) return void res.writeHead(304, headers).end();
    if (req.method === 'HEAD') {
      await requireObject(ctx, file, ctx.store.stat(objectKey(file.applicationId, file.objectId)));
      return void res.writeHead(200, { ...headers, ...bodyHeaders(file, file.byteSize) }).end();
    }
    const range = parseRange(req.headers, validators, file.byteSize);
    if (range === 'unsatisfiable') {
      return sendError(res, httpErrors.rangeUnsatisfiable, requestId, {
        ...headers,
        'content-range': `bytes */${file.byteSize}`,
      });
    }
    const release = acquire(clientNetwork, file.id);
    await send(ctx, { res, headers, requestId, file, range, stallTimeoutMs }).finally(() => {
      // The response to a client that went away while the object was being opened is closed.
      if (res.closed) release();
      else res.once('close', release);
    });
  };
  return async (req: IncomingMessage, res: ServerResponse, givenId: string, clientNetwork: string): Promise<void> => {
    const requestId = givenId || newId();
    res.on('error', () => undefined);
    if (!(await waitForTurn(res))) return;
    try {
      if (!ALLOWED_METHODS.includes(req.method ?? '')) {
        return sendError(res, httpErrors.methodNotAllowed, requestId, { allow: ALLOWED_METHODS.join(', ') });
      }
      await respond(req, res, requestId, clientNetwork);
    } catch (err) {
      reject(ctx, res, requestId, err);
    }
  };
}

function createDownloadQuota(max: number): (clientNetwork: string, fileId: string) => () => void {
  const [ofNetwork, ofFile, total] = [createShare(max), createShare(max), new ConcurrencyLimit(max)];
  downloadsOpen.watch(() => [[total.count()]]);
  downloadsMax.watch(() => [[max]]);
  const times = { windowMs: RETRY_MS, retryMs: RETRY_MS };
  return (clientNetwork, fileId) =>
    acquireAll(
      [
        ofNetwork,
        clientNetwork,
        () => errors.downloads_of_network({ policy: 'downloads-at-once-ip', limit: ofNetwork.max, ...times }),
      ],
      [ofFile, fileId, () => errors.downloads_of_file({ policy: 'downloads-at-once-file', limit: ofFile.max, ...times })],
      [total, '', errors.too_many_downloads],
    );
}

/** The handler as routes of the service's own port. A signed URL is all that a caller needs. */
export function downloadRoutes(handle: DownloadHandler): HttpRoute[] {
  return [...ALLOWED_METHODS, ...REJECTED_METHODS].map((method) => ({
    method,
    path: DOWNLOADS_PATH,
    needsCredential: false,
    handle: (req, res, requestId, isService) => handle(req, res, requestId, networkOfCaller(req, isService)),
  }));
}

function networkOfCaller(req: IncomingMessage, isService: boolean): string {
  const reported = req.headers['x-client-network'];
  return isService && typeof reported === 'string' ? reported : networkOf(canonicalIp(req.socket.remoteAddress));
}

async function findFile(ctx: FilesContext, url: string): Promise<StoredFile> {
  const path = url.split('?', 1)[0] as string;
  const id = ctx.downloadUrls.read(path.slice(path.lastIndexOf('/') + 1), ctx.clock());
  const file = id === undefined ? undefined : await selectFileOfObject(ctx.pool, id);
  if (!file) throw errors.download_not_found();
  return file;
}

interface Download {
  readonly res: ServerResponse;
  readonly headers: OutgoingHttpHeaders;
  readonly requestId: string;
  readonly file: StoredFile;
  /** Undefined for the whole. */
  readonly range: ByteRange | undefined;
  readonly stallTimeoutMs: number;
}

async function send(ctx: FilesContext, { res, headers, requestId, file, range, stallTimeoutMs }: Download): Promise<void> {
  const body = await requireObject(ctx, file, ctx.store.read(objectKey(file.applicationId, file.objectId), range));
  const byteSize = range ? range.end - range.start + 1 : file.byteSize;
  const startedAt = performance.now();
  res.writeHead(range ? 206 : 200, {
    ...headers,
    ...bodyHeaders(file, byteSize),
    ...(range && { 'content-range': `bytes ${range.start}-${range.end}/${file.byteSize}` }),
  });
  // The parts of a file that is fetched in parts count once.
  if (!range || range.start === 0) ctx.usage.add(file.applicationId, 'downloads');
  const facts = () => ({ requestId, fileId: file.id, byteSize, ms: Math.round(performance.now() - startedAt) });
  try {
    await sendBody(res, body, { byteSize, stallTimeoutMs });
    ctx.logger.debug(facts(), 'download');
  } catch (err) {
    ctx.logger[err instanceof ObjectSizeError ? 'error' : 'info']({ ...facts(), err }, 'download cut short');
  }
}

/** The object of a file. Without one, the file was just deleted or replaced, or is damaged. */
async function requireObject<T>(ctx: FilesContext, file: StoredFile, reading: Promise<T | undefined>): Promise<T> {
  const found = await reading.catch(rejectUnavailable);
  if (found !== undefined) return found;
  if (!(await selectFileOfObject(ctx.pool, file.objectId))) throw errors.download_not_found();
  throw new Error(`File ${file.id} has no object`);
}

function reject(ctx: FilesContext, res: ServerResponse, requestId: string, err: unknown): void {
  const known = toDomainError(err) ?? internal_error();
  const { kind, reason } = known;
  const isOverQuota = kind === 'rate_limited' || reason === 'too_many_downloads';
  if (isOverQuota) ctx.logger.warn({ requestId, reason }, 'download rejected: too many are open');
  else if (kind !== 'not_found') ctx.logger.error({ err, requestId }, 'download failed');
  if (res.headersSent) res.destroy();
  else sendError(res, known, requestId);
}
