import { networkOf } from '@latchkey/kit/http/client-ip';
import { whileTransferring } from '@latchkey/kit/http/connections';
import type { Logger } from '@latchkey/kit/logger';
import type { FastifyInstance } from 'fastify';
import type { FilesDataPath } from '../files-data-path.ts';
import { clientIpOf } from '../limit/client-ip.ts';
import { closeSlowReader } from './slow-reader.ts';

/** Where the URLs of files on disk lead. */
export const DOWNLOADS_URL = '/downloads/:token';

/** Puts the files' own URLs on the server: whoever has one may use it (decisions 11). It answers for itself, refusals included. */
export function registerDownloads(app: FastifyInstance, files: FilesDataPath, logger: Logger): void {
  app.route({
    method: ['GET', 'HEAD'],
    url: DOWNLOADS_URL,
    schema: { hide: true } as object,
    handler: async (request, reply) => {
      const { raw: req, id } = request;
      for (const [name, value] of Object.entries(reply.getHeaders())) if (value !== undefined) reply.raw.setHeader(name, value);
      closeSlowReader(reply.raw, req.socket, () =>
        logger.info({ requestId: id }, 'download closed: the client reads too slowly'),
      );
      await whileTransferring(req.socket, () => files.download(req, reply.raw, id, networkOf(clientIpOf(request))));
      reply.hijack();
    },
  });
}
