import { commonErrors, DomainError, fromConnectError } from '@latchkey/kit/errors/errors';
import { UploadFileResponseSchema } from '@latchkey/proto/latchkey/files/v1/file_pb';
import { z } from 'zod';
import { digestHeaders, requireDigest } from '../http/content-digest.ts';
import { announcedByteSize, sendContinue } from '../http/request-body.ts';
import { defineRoute, type RouteContext } from '../routing/route.ts';
import { applicationQuery, checksum, fileName, flag, idOf } from '../routing/schemas.ts';

export const uploadFileRoutes = ({ clients: { files }, filesData, limits }: RouteContext) => ({
  uploadFile: defineRoute('POST /api/v1/panel/upload-file', 'files:upload', {
    application: 'query',
    summary: 'Upload a file',
    description:
      'The body is the content of the file, of any declared or unknown size. Limits are checked before and while it is read. One upload at a time for each account. With `replace=true` an existing file of the name gets the new content and keeps its id; until that is stored it has the old one. An upload that is repeated with the same `Content-Digest` within 10 minutes, by the same key or session, is answered with the stored file. After 503 `outcome_unknown` the file may be stored, with the id in `X-File-Id`.',
    limit: { limit: limits.uploads, per: 'account' },
    bytesBody: 'plain',
    examples: { text: 'Hello, Latchkey!\n' },
    query: applicationQuery.extend({
      fileName,
      replace: z
        .optional(flag)
        .meta({ description: 'True to replace the file that has the name, if there is one.', examples: [true] }),
    }),
    headers: digestHeaders,
    data: z
      .object({ id: idOf('file', 'File id.'), byteSize: z.int().meta({ examples: [17] }), checksum })
      .meta({ id: 'UploadedFile' }),
    failures: ['content_digest_required', 'beginUpload', UploadFileResponseSchema],
    message: 'File uploaded.',
    handle: async ({ application, raw, reply, query, headers }) => {
      const { fileName, replace = false } = query;
      requireDigest(headers);
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
      if (repeated) return repeated;
      sendContinue(reply.raw);
      return filesData.upload(ticket, raw, reply.request.id).catch(async (err: unknown) => {
        // The body may have broken off early. Its ticket would delay the next upload.
        await files.abandonUpload({ ticket }).catch(() => undefined);
        const known = fromConnectError(err);
        // Clients see no tickets. One expires if a process hung before the bytes arrived.
        if (known?.reason === 'upload_ticket_invalid') throw commonErrors.dependency_unavailable();
        if (known?.reason !== 'outcome_unknown') throw err;
        reply.header('x-file-id', fileId);
        throw new DomainError(known.reason, { ...known, message: `It is not known whether the file was stored, as ${fileId}.` });
      });
    },
  }),
});
