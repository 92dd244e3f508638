import { commonErrors, fromConnectError } from '@latchkey/kit/errors';
import { z } from 'zod';
import type { Clients } from '../clients.ts';
import type { FilesDataPath } from '../files-data-path.ts';
import { announcedByteSize } from '../http/bytes-body.ts';
import { parseContentDigest } from '../http/content-digest.ts';
import { sendContinue } from '../http/continue.ts';
import type { Limits } from '../limit/limits.ts';
import { defineRoute, type Route } from '../route/route.ts';
import { withApplication } from './application-access.ts';
import { applicationQuery, checksum, fileName, idOf } from './schemas.ts';

const contentDigest = z
  .string()
  .transform((text, ctx) => {
    const sha256 = parseContentDigest(text);
    if (!sha256)
      ctx.issues.push({ code: 'custom', message: 'must be RFC 9530 digests, with a sha-256 of 32 bytes', input: text });
    return sha256 ?? z.NEVER;
  })
  .meta({
    description:
      'Digests of the body (RFC 9530). The upload is refused unless its SHA-256 is the one given; other algorithms are passed over.',
    examples: ['sha-256=:UhF+2GR+/V3RZgdu3lQR0exGg/IAOsLllxtfDhJDRhY=:'],
  });

/** Uploads (specification 4.2). */
export function uploadFileRoute(clients: Clients, filesData: FilesDataPath, limits: Limits): Route {
  return defineRoute({
    method: 'POST',
    url: '/api/v1/panel/upload-file',
    operationId: 'uploadFile',
    access: 'files:upload',
    tag: 'Files',
    summary: 'Upload a file',
    description:
      'The body is the content of the file. Its size need not be known before; whether it fits is looked at before it is read and while it is. One upload at a time for each account.',
    limit: { limit: limits.uploads, per: 'account' },
    takesBytes: true,
    examples: { text: 'Hello, Latchkey!\n' },
    query: applicationQuery.extend({ fileName }),
    headers: z.object({ 'content-digest': contentDigest.optional() }),
    data: z
      .object({ id: idOf('file', 'File id.'), byteSize: z.int().meta({ examples: [17] }), checksum })
      .meta({ id: 'UploadedFile' }),
    failures: ['invalid_file', 'upload_timeout', 'file_name_taken', 'limit_exceeded'],
    message: 'File uploaded.',
    handle: (request) =>
      withApplication(clients, request, request.query.applicationId, async (ref) => {
        const { raw, reply, query, headers } = request;
        const byteSize = announcedByteSize(raw);
        const { ticket } = await clients.files.beginUpload(
          {
            ...ref,
            fileName: query.fileName,
            ...(byteSize !== undefined && { byteSize: BigInt(byteSize) }),
            expectedChecksum: headers['content-digest'] ?? new Uint8Array(),
          },
          request.call,
        );
        sendContinue(reply.raw);
        const stored = await filesData.upload(ticket, raw, reply.request.id).catch(async (err: unknown) => {
          // A body that broke off at once may never have been asked for, and its ticket would hold up the next upload.
          await clients.files.abandonUpload({ ticket }, request.call).catch(() => undefined);
          // The client knows nothing of tickets: one expires where a process hung before the bytes came.
          const isExpired = fromConnectError(err)?.reason === 'upload_ticket_invalid';
          throw isExpired ? commonErrors.dependency_unavailable() : err;
        });
        return {
          id: stored.id,
          byteSize: Number(stored.byteSize),
          checksum: Buffer.from(stored.checksum).toString('hex'),
        };
      }),
  });
}
