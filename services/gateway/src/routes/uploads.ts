import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { timestampDate } from '@bufbuild/protobuf/wkt';
import { UNFINISHED_UPLOADS_MAX, UPLOAD_LIFETIME_HOURS, UPLOAD_METADATA_LENGTH_MAX } from '@latchkey/contract/resumable-upload';
import { fromConnectError } from '@latchkey/kit/errors/errors';
import { ChunkedRequest } from '@latchkey/kit/http/chunked-request';
import { AppendUploadResponseSchema, type Upload } from '@latchkey/proto/latchkey/files/v1/upload_pb';
import type { FastifyReply } from 'fastify';
import { z } from 'zod';
import type { Principal } from '../authentication/credential.ts';
import { isStateChanging } from '../authentication/csrf.ts';
import { errors } from '../errors.ts';
import { digestHeaders, requireDigest } from '../http/content-digest.ts';
import { announcedByteSize, bytesTypeUnsupported, CHUNK_MEDIA_TYPE, sendContinue } from '../http/request-body.ts';
import { currentRequest } from '../request-context.ts';
import { readRequestBody } from '../routing/read-request-body.ts';
import { checkReplay, resolveApplication } from '../routing/resolve-application.ts';
import { component, defineRoute, type RouteContext } from '../routing/route.ts';
import { applicationId, checksum, fileName, flag, idOf, idText, timestamp } from '../routing/schemas.ts';

const URL = '/api/v1/panel/uploads';
const VERSION = '1.0.0';
const TUS = { 'tus-resumable': VERSION, 'tus-version': VERSION };
const EXTENSIONS = 'creation,creation-with-upload,expiration,termination';

/** Throws `tus_version_unsupported`. Requests that only read may come without the protocol. */
function checkVersion({ method, headers: { 'tus-resumable': version } }: IncomingMessage): void {
  if (version !== VERSION && (version !== undefined || isStateChanging(method))) throw errors.tus_version_unsupported();
}

const COUNT_RULE = 'must be a whole number of bytes';
const byteCount = (description: string, example: string) =>
  z
    .string()
    .regex(/^\d{1,15}$/, COUNT_RULE)
    .transform(Number)
    .meta({ type: 'integer', minimum: 0, maximum: 10 ** 15 - 1, description, examples: [example] });

const sha256 = z.string().regex(/^[0-9a-f]{64}$/i, 'must be a SHA-256 in hex');
const metadataValues = z.object({ applicationId: idText, fileName, sha256: sha256.optional(), replace: flag.optional() });
const METADATA_RULE = `must be keys with values in Base64, up to ${UPLOAD_METADATA_LENGTH_MAX} characters`;

const PAIR = '[!-+.-~-]+( +[A-Za-z0-9+/]+={0,2})?';

/** The values of `Upload-Metadata` that the service reads; other keys are only stored. */
const metadata = z
  .string()
  .transform((text, ctx) => {
    const values = parseMetadata(text);
    const parsed = metadataValues.safeParse(values);
    if (values && parsed.success) return { ...parsed.data, text };
    const [issue] = values ? (parsed.error?.issues ?? []) : [];
    const message = issue ? `needs a valid ${issue.path.join('.')}` : METADATA_RULE;
    ctx.issues.push({ code: 'custom', message, input: text });
    return z.NEVER;
  })
  .meta({
    maxLength: UPLOAD_METADATA_LENGTH_MAX,
    pattern: `^${PAIR}( *, *${PAIR})*$`,
    description:
      'Pairs of a key and a value in Base64, in any order: `applicationId`, `fileName`, `sha256` (of the whole file, in hex) where the bytes must have it, and `replace` (`true`) to replace the file that has the name. Other keys are only stored.',
    examples: [`applicationId ${btoa('019a9e41-0b7d-7a06-9f52-3c8e1d4b7a15')},fileName ${btoa('setup-1.2.exe')}`],
  });

function parseMetadata(text: string): Record<string, string> | undefined {
  if (text.length > UPLOAD_METADATA_LENGTH_MAX) return undefined;
  const pairs = text.split(',').map((pair) => /^ *([^\s,]+)(?: +([A-Za-z0-9+/]+={0,2}))? *$/.exec(pair));
  const values = new Map(pairs.map((match) => [match?.[1] ?? '', Buffer.from(match?.[2] ?? '', 'base64').toString()]));
  return pairs.every(Boolean) && values.size === pairs.length ? Object.fromEntries(values) : undefined;
}

const upload = component('Upload', {
  id: idOf('file', 'Upload id, which the file will have too unless it replaces one.'),
  applicationId,
  fileName,
  byteSize: z.int().meta({ description: 'Size of the whole file.', examples: [157_286_400] }),
  byteOffset: z.int().meta({ description: 'Bytes that are stored.', examples: [10_485_760] }),
  sha256: checksum.nullable().meta({ description: 'SHA-256 that the whole file must have.' }),
  fileId: idOf('file', 'Id that the file will have, or has.'),
  isReplacement: z.boolean().meta({ description: 'True if it replaces a file.' }),
  isFinished: z.boolean().meta({ description: 'True once the file can be listed and downloaded.' }),
  createdAt: timestamp,
  expiresAt: timestamp,
});

const params = z.object({ id: idOf('file', 'Id of the upload, from `createUpload`.') });

/** Checked before the schema. An enum, as a generator rejects constants in headers. */
const tusHeaders = z.object({
  'tus-resumable': z.enum([VERSION]).meta({ description: 'Version of the tus protocol.', examples: [VERSION] }),
});

const OFFSET_HEADERS = {
  'Upload-Offset': 'Bytes that are stored.',
  'Upload-Expires': `When the upload expires: ${UPLOAD_LIFETIME_HOURS} hours after its last chunk.`,
  'X-File-Id': 'Id of the file, once it is stored.',
  'X-File-Checksum': 'SHA-256 of the file in hex, once it is stored.',
};

/** Rejections of first bytes that end the upload they came with: the request itself is at fault. */
const BODY_FAULTS = new Set(['chunk_too_long', 'chunks_too_small', 'checksum_mismatch']);

type UploadRequest = Parameters<typeof readRequestBody>[0];

export function uploadRoutes({ clients, filesData, limits }: RouteContext) {
  const { uploads, files } = clients;
  const tus = { headersAlways: TUS, checkHead: checkVersion };
  const failures = ['getUpload', AppendUploadResponseSchema, 'application_forbidden', 'tus_version_unsupported'] as const;

  /** The upload of a path, whose application the principal may use. */
  async function find(
    { principal, params: { id: uploadId } }: { principal: Principal; params: { id: string } },
    repeatsAppend = false,
  ) {
    const { accountId } = principal;
    const found = (await uploads.getUpload({ accountId, uploadId, repeatsAppend })).upload as Upload;
    await resolveApplication(clients, principal, found.applicationId);
    return found;
  }

  async function append(uploadId: string, byteOffset: number, request: UploadRequest, body?: Readable): Promise<Upload> {
    sendContinue(request.reply.raw);
    const appended = await filesData.appendUpload({ ...readRequestBody(request, body), uploadId, byteOffset });
    return appended.upload as Upload;
  }

  /** Makes the file of an upload whose bytes are there, and whose commit failed or was cut off. */
  async function complete(found: Upload, request: UploadRequest): Promise<Upload> {
    if (found.byteOffset < found.byteSize || found.checksum.byteLength > 0) return found;
    return append(found.id, Number(found.byteOffset), request, Readable.from([]));
  }

  return {
    describeUploads: defineRoute(`OPTIONS ${URL}`, 'public', {
      summary: 'Describe the tus protocol of this service',
      headersAlways: TUS,
      successStatus: 204,
      successHeaders: {
        'Tus-Version': 'Versions of the protocol.',
        'Tus-Extension': 'Its extensions that are supported.',
        'Tus-Max-Size': 'Largest file in bytes.',
      },
      handle: async ({ reply }) => {
        const { fileSizeMibMax } = await files.getStorageUsage({ accountId: '' });
        reply.headers({ 'tus-extension': EXTENSIONS, 'tus-max-size': String(fileSizeMibMax * 1024n * 1024n) });
      },
    }),
    createUpload: defineRoute(`POST ${URL}`, 'files:upload', {
      ...tus,
      summary: 'Create a resumable upload',
      description: [
        `tus 1.0.0. Makes the checks of \`uploadFile\`, and reserves the name, the storage and one file until the upload expires, ${UPLOAD_LIFETIME_HOURS} hours after its last chunk.`,
        `The body may be the first chunk. An account has at most ${UNFINISHED_UPLOADS_MAX} unfinished uploads.`,
      ].join(' '),
      limit: { limit: limits.uploads, per: 'account' },
      bytesBody: 'chunk',
      isBodyOptional: true,
      headers: tusHeaders.extend({
        'upload-length': byteCount('Size of the whole file in bytes.', '17'),
        'upload-metadata': metadata,
        ...digestHeaders.shape,
      }),
      data: upload,
      successStatus: 201,
      successHeaders: { Location: 'Path of the upload.', ...OFFSET_HEADERS },
      failures: ['tus_version_unsupported', 'application_not_found', 'application_forbidden', AppendUploadResponseSchema],
      message: 'Upload created.',
      handle: async (request) => {
        const { principal, headers, raw, reply } = request;
        const { fileName, sha256 = '', replace = false, text, ...given } = headers['upload-metadata'];
        const application = await resolveApplication(clients, principal, given.applicationId);
        const byteSize = announcedByteSize(raw);
        if (byteSize !== undefined && byteSize > headers['upload-length']) throw errors.chunk_too_long();
        const description = { fileName, replace, byteSize: BigInt(headers['upload-length']), metadata: text };
        const expectedChecksum = new Uint8Array(Buffer.from(sha256, 'hex'));
        const created = (await uploads.createUpload({ ...application, ...description, expectedChecksum })).upload as Upload;
        reply.header('location', `${URL}/${created.id}`);
        // The idempotency key is that of the creation, whose result other calls would get.
        delete currentRequest()?.idempotency;
        const ref = { principal, params: { id: created.id } };
        // A repeated request may come after other chunks.
        if (currentRequest()?.isReplayed || byteSize === 0) return describe(reply, await find(ref));
        const appended = append(created.id, 0, request).catch(async (err: unknown) => {
          const known = raw instanceof ChunkedRequest && raw.rejection ? raw.rejection : fromConnectError(err);
          if (known && BODY_FAULTS.has(known.reason)) {
            reply.removeHeader('location');
            // Where this fails, the upload expires.
            await uploads.endUpload({ accountId: principal.accountId, uploadId: created.id }).catch(() => undefined);
          }
          // The client learns of a part of its body by the offset, and continues there.
          if ((known?.httpStatus ?? 500) < 500 && known?.kind !== 'timeout') throw err;
          return find(ref);
        });
        return describe(reply, await appended);
      },
    }),
    listUploads: defineRoute(`GET ${URL}`, 'files:upload', {
      ...tus,
      summary: 'List the unfinished uploads',
      description: 'Oldest first. A restricted key gets those of its applications.',
      headers: tusHeaders.partial(),
      data: z.array(upload),
      failures: ['tus_version_unsupported'],
      message: 'Successfully fetched uploads.',
      handle: async ({ principal }) => {
        const found = await uploads.listUploads({ accountId: principal.accountId });
        const isAllowed = ({ applicationId }: Upload) => principal.allApplications || principal.applicationIds.has(applicationId);
        return found.uploads.filter(isAllowed).map(toRecord);
      },
    }),
    getUpload: defineRoute(`GET ${URL}/:id`, 'files:upload', {
      ...tus,
      summary: 'Get an upload',
      description: `\`HEAD\` is the request of tus. A finished upload is remembered for ${UPLOAD_LIFETIME_HOURS} hours.`,
      params,
      headers: tusHeaders.partial(),
      data: upload,
      successHeaders: { 'Upload-Length': 'Size of the whole file in bytes.', ...OFFSET_HEADERS },
      failures,
      message: 'Successfully fetched upload.',
      handle: async (request) => {
        const found = await find(request);
        const { byteSize, metadata } = found;
        request.reply.headers({ 'upload-length': String(byteSize), ...(metadata && { 'upload-metadata': metadata }) });
        return describe(request.reply, await complete(found, request));
      },
    }),
    appendUpload: defineRoute(`PATCH ${URL}/:id`, 'files:upload', {
      ...tus,
      summary: 'Append a chunk to an upload',
      description: [
        'tus 1.0.0. Bytes that arrive before a failure stay: `HEAD` says where to continue. One chunk at a time for each upload.',
        'The last chunk succeeds once the file is stored; bytes with another SHA-256 than announced are removed.',
        'With `Content-Digest` only a whole chunk that matches it stays.',
      ].join(' '),
      bytesBody: 'chunk',
      params,
      headers: tusHeaders.extend({ 'upload-offset': byteCount('Bytes that are stored already.', '0'), ...digestHeaders.shape }),
      successStatus: 204,
      successHeaders: OFFSET_HEADERS,
      failures: ['content_digest_required', ...failures],
      handle: async (request) => {
        const { raw, reply, headers } = request;
        if (raw.headers['content-type'] === undefined) throw bytesTypeUnsupported(CHUNK_MEDIA_TYPE);
        requireDigest(headers);
        const found = await find(request, true);
        const isRepeated = currentRequest()?.isReplayed === true;
        describe(reply, await (isRepeated ? complete(found, request) : append(found.id, headers['upload-offset'], request)));
      },
    }),
    endUpload: defineRoute(`DELETE ${URL}/:id`, 'files:upload', {
      ...tus,
      summary: 'End an unfinished upload',
      description: 'Removes what it stored, and frees what it reserved. A finished one keeps its file.',
      params,
      headers: tusHeaders,
      successStatus: 204,
      failures: ['application_forbidden', 'tus_version_unsupported'],
      handle: async (request) => {
        const { principal, params } = request;
        await find(request).catch((err: unknown) => {
          // Repeated with its idempotency key, the end of an upload that has ended succeeds.
          if (fromConnectError(err)?.reason !== 'upload_expired') throw err;
        });
        const { applicationId } = await uploads.endUpload({ accountId: principal.accountId, uploadId: params.id });
        await checkReplay(clients, principal, applicationId);
      },
    }),
  };
}

function describe(reply: FastifyReply, found: Upload) {
  reply.headers({
    'upload-offset': String(found.byteOffset),
    'upload-expires': timestampDate(found.expiresAt as NonNullable<Upload['expiresAt']>).toUTCString(),
  });
  if (found.checksum.byteLength > 0)
    reply.headers({ 'x-file-id': found.fileId, 'x-file-checksum': Buffer.from(found.checksum).toString('hex') });
  return toRecord(found);
}

function toRecord(found: Upload) {
  const sha256 = found.expectedChecksum.byteLength > 0 ? found.expectedChecksum : null;
  return { ...found, sha256, isFinished: found.checksum.byteLength > 0 };
}
