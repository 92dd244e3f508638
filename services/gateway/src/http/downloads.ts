import { networkOf } from '@latchkey/kit/http/client-ip';
import { runTransfer } from '@latchkey/kit/http/connections';
import type { FastifyInstance } from 'fastify';
import type { FilesDataPath } from '../files-data-path.ts';
import { currentRequest } from '../request-context.ts';

export const DOWNLOADS_URL = '/downloads/:token';

/** Serves download URLs. The files service writes the responses, errors included. */
export function registerDownloads(app: FastifyInstance, files: FilesDataPath): void {
  app.route({
    method: ['GET', 'HEAD'],
    url: DOWNLOADS_URL,
    schema: { hide: true } as object,
    handler: async ({ raw: req, id }, reply) => {
      for (const [name, value] of Object.entries(reply.getHeaders())) if (value !== undefined) reply.raw.setHeader(name, value);
      const network = networkOf(currentRequest()?.clientIp ?? '');
      await runTransfer(req.socket, () => files.download(req, reply.raw, id, network));
      reply.hijack();
    },
  });
}
