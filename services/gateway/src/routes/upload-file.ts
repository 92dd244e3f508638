import { commonErrors, DomainError, fromConnectError } from '@latchkey/kit/errors/errors';
import { FileService, type UploadFileResponse, UploadFileResponseSchema } from '@latchkey/proto/latchkey/files/v1/file_pb';
import { parseDictionary } from 'structured-headers';
import { z } from 'zod';
import { errors } from '../errors.ts';
import { announcedByteSize, sendContinue } from '../http/request-body.ts';
import { currentRequest } from '../request-context.ts';
import { defineRoute, type RouteContext } from '../routing/route.ts';
import { applicationQuery, checksum, fileName, flag, idOf } from '../routing/schemas.ts';

const SHA256_BYTES = 32;

/** The SHA-256 of digests (RFC 9530, RFC 9651); empty without one, undefined if malformed. */
function parseContentDigest(field: string): Buffer | undefined {
  try {
    const digests = new Map([...parseDictionary(field)].map(([name, [value]]) => [name, value]));
    if (![...digests.values()].every((value) => value instanceof ArrayBuffer)) return undefined;
    const sha256 = digests.get('sha-256') as ArrayBuffer | undefined;
    return sha256 === undefined || sha256.byteLength === SHA256_BYTES ? Buffer.from(sha256 ?? new ArrayBuffer(0)) : undefined;
  } catch {
    return undefined;
  }
}

const contentDigest = z
  .string()
  .transform((text, ctx) => {
    const sha256 = parseContentDigest(text);
    if (!sha256)
      ctx.issues.push({ code: 'custom', message: 'must be RFC 9530 digests, with a sha-256 of 32 bytes', input: text });
    return sha256 ?? z.NEVER;
  })
  .meta({
    description: 'Digests of the body (RFC 9530). A body with another SHA-256 is rejected; other algorithms are ignored.',
    pattern: '^sha-256=:[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=:$',
    examples: ['sha-256=:UhF+2GR+/V3RZgdu3lQR0exGg/IAOsLllxtfDhJDRhY=:'],
  });

const toUploadedFile = ({ id, byteSize, checksum }: Pick<UploadFileResponse, 'id' | 'byteSize' | 'checksum'>) => ({
  id,
  byteSize: Number(byteSize),
  checksum: Buffer.from(checksum).toString('hex'),
});

export const uploadFileRoutes = ({ clients: { files }, filesData, limits }: RouteContext) => [
  defineRoute('POST /api/v1/panel/upload-file', 'files:upload', {
    operationId: 'uploadFile',
    application: 'query',
    summary: 'Upload a file',
    description:
      'The body is the content of the file, of any declared or unknown size. Limits are checked before and while it is read. One upload at a time for each account. With `replace=true` an existing file of the name gets the new content and keeps its id; until that is stored it has the old one. An upload that is repeated with the same `Content-Digest` within 10 minutes, by the same key or session, is answered with the stored file. After 503 `outcome_unknown` the file may be stored, with the id in `X-File-Id`.',
    limit: { limit: limits.uploads, per: 'account' },
    bytesBody: 'plain',
    examples: { text: 'Hello, Latchkey!\n' },
    query: applicationQuery.extend({
      fileName,
      replace: flag
        .optional()
        .meta({ description: 'True to replace the file that has the name, if there is one.', examples: [true] }),
    }),
    headers: z.object({ 'content-digest': contentDigest.optional() }),
    data: z
      .object({ id: idOf('file', 'File id.'), byteSize: z.int().meta({ examples: [17] }), checksum })
      .meta({ id: 'UploadedFile' }),
    failures: ['content_digest_required', FileService.method.beginUpload, UploadFileResponseSchema],
    message: 'File uploaded.',
    handle: async ({ application, raw, reply, query, headers }) => {
      const { fileName, replace = false } = query;
      if (currentRequest()?.idempotency && !headers['content-digest']?.byteLength) throw errors.content_digest_required();
      const byteSize = announcedByteSize(raw);
      const {
        ticket,
        fileId,
        stored: repeated,
      } = await files.beginUpload({
        ...application,
        fileName,
        replace,
        ...(byteSize !== undefined && { byteSize: BigInt(byteSize) }),
        expectedChecksum: headers['content-digest'] ?? new Uint8Array(),
      });
      if (repeated) return toUploadedFile(repeated);
      sendContinue(reply.raw);
      const stored = await filesData.upload(ticket, raw, reply.request.id).catch(async (err: unknown) => {
        // The body may have broken off early. Its ticket would delay the next upload.
        await files.abandonUpload({ ticket }).catch(() => undefined);
        const known = fromConnectError(err);
        // Clients see no tickets. One expires if a process hung before the bytes arrived.
        if (known?.reason === 'upload_ticket_invalid') throw commonErrors.dependency_unavailable();
        if (known?.reason !== 'outcome_unknown') throw err;
        reply.header('x-file-id', fileId);
        throw new DomainError(known.reason, { ...known, message: `It is not known whether the file was stored, as ${fileId}.` });
      });
      return toUploadedFile(stored);
    },
  }),
];
