import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Readable } from 'node:stream';
import { isDatabaseUnavailable } from '@latchkey/kit/database/database';
import { commonErrors, DomainError, defineErrors } from '@latchkey/kit/errors';
import { answerTurn } from '@latchkey/kit/http/answer-turn';
import { canonicalIp, networkOf } from '@latchkey/kit/http/client-ip';
import { newId } from '@latchkey/kit/id';
import type { PlainRoute } from '@latchkey/kit/rpc/plain-route';
import type { FilesContext } from '../../context.ts';
import { errors } from '../../errors.ts';
import { type ByteRange, objectKey } from '../object-store/object-store.ts';
import { parseRange } from './byte-range.ts';
import { type DownloadableFile, selectDownloadable } from './download.store.ts';
import {
  bodyHeaders,
  fileHeaders,
  METHOD_NOT_ALLOWED,
  PRECONDITION_FAILED,
  RANGE_UNSATISFIABLE,
  sendRefusal,
  validatorsOf,
} from './download-answer.ts';
import { DOWNLOADS_PATH } from './download-url.ts';
import { OpenDownloads } from './open-downloads.ts';
import { checkPreconditions, isRangeWanted } from './precondition.ts';
import { sendBody } from './send-body.ts';

/**
 * Answers a request for `/downloads/<token>` with every header there is, and never rejects. The network is the client's, as `networkOf` names it:
 * the limit per network counts it.
 */
export type DownloadHandler = (
  req: IncomingMessage,
  res: ServerResponse,
  requestId: string,
  clientNetwork: string,
) => Promise<void>;

/** What a download may do. */
export interface DownloadOptions {
  /** How long it may stand still, in milliseconds. 30 s unless set; it may take as long as it likes. */
  readonly stallTimeoutMs?: number;
}

const STALL_TIMEOUT_MS = 30_000;
const ALLOWED_METHODS = ['GET', 'HEAD'];
const REFUSED_METHODS = ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];

const TOO_MANY = new Set(['downloads_of_network', 'downloads_of_file', 'too_many_downloads']);

const { internal_error } = defineErrors({ internal_error: { kind: 'internal', message: 'Internal server error' } });

/** A request for a file that is there. */
interface Download {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly requestId: string;
  readonly clientNetwork: string;
  readonly file: DownloadableFile;
}

/** Serves files by the URLs that this service signed (decisions 11): GET and HEAD, ranges and preconditions as in RFC 9110. */
export function createDownloadHandler(ctx: FilesContext, options: DownloadOptions = {}): DownloadHandler {
  const { stallTimeoutMs = STALL_TIMEOUT_MS } = options;
  const open = new OpenDownloads(ctx.limits.downloadsAtOnce);
  return async (req, res, givenId, clientNetwork) => {
    const requestId = givenId || newId();
    // Whoever goes away in the middle is told of by the pipeline; before it, nobody cares.
    res.on('error', () => undefined);
    if (!(await answerTurn(res))) return;
    try {
      if (!ALLOWED_METHODS.includes(req.method ?? '')) {
        sendRefusal(res, METHOD_NOT_ALLOWED, requestId, { allow: ALLOWED_METHODS.join(', ') });
        return;
      }
      const file = await findFile(ctx, req.url ?? '');
      await answer(ctx, { req, res, requestId, clientNetwork, file }, { open, stallTimeoutMs });
    } catch (err) {
      refuse(ctx, res, requestId, err);
    }
  };
}

/** The handler as routes of the service's own port, those it refuses among them. Whoever has a URL may use it. */
export function downloadRoutes(handle: DownloadHandler): PlainRoute[] {
  const methods = [...ALLOWED_METHODS, ...REFUSED_METHODS];
  return methods.map((method) => ({
    method,
    path: DOWNLOADS_PATH,
    needsCredential: false,
    handle: (req, res, requestId, isService) => handle(req, res, requestId, networkOfCaller(req, isService)),
  }));
}

/** The client's network as the gateway reports it; that of the connection for a caller that is no service of the deployment. */
function networkOfCaller(req: IncomingMessage, isService: boolean): string {
  const reported = req.headers['x-client-network'];
  return isService && typeof reported === 'string' ? reported : networkOf(canonicalIp(req.socket.remoteAddress));
}

/** One answer for what is forged, expired or deleted. */
async function findFile(ctx: FilesContext, url: string): Promise<DownloadableFile> {
  const path = url.split('?', 1)[0] as string;
  const id = ctx.downloadUrls.read(path.slice(path.lastIndexOf('/') + 1), ctx.clock());
  const file = id === undefined ? undefined : await selectDownloadable(ctx.pool, id);
  if (!file) throw errors.download_not_found();
  return file;
}

/** What bounds a download. */
interface Bounds {
  readonly open: OpenDownloads;
  readonly stallTimeoutMs: number;
}

async function answer(ctx: FilesContext, download: Download, { open, stallTimeoutMs }: Bounds): Promise<void> {
  const { req, res, requestId, clientNetwork, file } = download;
  const validators = validatorsOf(file);
  const headers = fileHeaders(file, requestId);
  const status = checkPreconditions(req.headers, validators);
  if (status === 412) return sendRefusal(res, PRECONDITION_FAILED, requestId, headers);
  if (status === 304) return void res.writeHead(304, headers).end();
  if (req.method === 'HEAD') {
    await checkObject(ctx, file);
    res.writeHead(200, { ...headers, ...bodyHeaders(file, file.byteSize) }).end();
    return;
  }
  const range = isRangeWanted(req.headers['if-range'] as string | undefined, validators)
    ? parseRange(req.headers.range, file.byteSize)
    : undefined;
  if (range === 'unsatisfiable') {
    return sendRefusal(res, RANGE_UNSATISFIABLE, requestId, { ...headers, 'content-range': `bytes */${file.byteSize}` });
  }
  await open.during(res, { clientNetwork, fileId: file.id }, async () => {
    const body = await openObject(ctx, file, range);
    await send(ctx, download, { range, body, stallTimeoutMs });
  });
}

interface Sending {
  readonly range: ByteRange | undefined;
  readonly body: Readable;
  readonly stallTimeoutMs: number;
}

async function send(
  ctx: FilesContext,
  { res, requestId, file }: Download,
  { range, body, stallTimeoutMs }: Sending,
): Promise<void> {
  const byteSize = range ? range.end - range.start + 1 : file.byteSize;
  const startedAt = performance.now();
  res.writeHead(range ? 206 : 200, {
    ...fileHeaders(file, requestId),
    ...bodyHeaders(file, byteSize),
    ...(range && { 'content-range': `bytes ${range.start}-${range.end}/${file.byteSize}` }),
  });
  const facts = () => ({ requestId, fileId: file.id, byteSize, ms: Math.round(performance.now() - startedAt) });
  try {
    await sendBody(res, body, { byteSize, stallTimeoutMs });
    ctx.logger.debug(facts(), 'download');
  } catch (err) {
    ctx.logger.info({ ...facts(), err }, 'download cut short');
  }
}

async function openObject(ctx: FilesContext, file: DownloadableFile, range: ByteRange | undefined): Promise<Readable> {
  const body = await ctx.store.read(objectKey(file.applicationId, file.id), range).catch(unavailable);
  return body ?? (await failForMissing(ctx, file));
}

async function checkObject(ctx: FilesContext, file: DownloadableFile): Promise<void> {
  const object = await ctx.store.stat(objectKey(file.applicationId, file.id)).catch(unavailable);
  if (!object) await failForMissing(ctx, file);
}

/** A file that was deleted a moment ago has no object; one that is there and has none is damage. */
async function failForMissing(ctx: FilesContext, file: DownloadableFile): Promise<never> {
  if (!(await selectDownloadable(ctx.pool, file.id))) throw errors.download_not_found();
  throw new Error(`File ${file.id} has no object`);
}

function unavailable(cause: unknown): never {
  const err = commonErrors.dependency_unavailable();
  err.cause = cause;
  throw err;
}

function refuse(ctx: FilesContext, res: ServerResponse, requestId: string, err: unknown): void {
  const refusal = err instanceof DomainError ? err : toDomainError(err);
  if (TOO_MANY.has(refusal.reason)) {
    ctx.logger.warn({ requestId, reason: refusal.reason }, 'download refused: too many are open');
  } else if (refusal.kind !== 'not_found') ctx.logger.error({ err, requestId }, 'download failed');
  if (res.headersSent) res.destroy();
  else sendRefusal(res, refusal, requestId);
}

function toDomainError(err: unknown): DomainError {
  return isDatabaseUnavailable(err) ? commonErrors.dependency_unavailable() : internal_error();
}
