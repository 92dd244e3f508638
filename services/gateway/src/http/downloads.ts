import { whileTransferring } from '@latchkey/kit/http/connections';
import type { FastifyInstance } from 'fastify';
import type { FilesDataPath } from '../files-data-path.ts';

/** Where the URLs of files on disk lead. */
export const DOWNLOADS_URL = '/downloads/:token';

/** Puts the files' own URLs on the server: whoever has one may use it (decisions 11). It answers for itself, refusals included. */
export function registerDownloads(app: FastifyInstance, files: FilesDataPath): void {
  app.route({
    method: ['GET', 'HEAD'],
    url: DOWNLOADS_URL,
    schema: { hide: true } as object,
    handler: async (request, reply) => {
      for (const [name, value] of Object.entries(reply.getHeaders())) if (value !== undefined) reply.raw.setHeader(name, value);
      await whileTransferring(request.raw.socket, () => files.download(request.raw, reply.raw, request.id));
      reply.hijack();
    },
  });
}
