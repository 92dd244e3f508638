import { createLineLog, type Logger } from '@latchkey/kit/log/logger';
import type { FastifyInstance } from 'fastify';

export function logRequests(app: FastifyInstance, logger: Logger): void {
  const logRequest = createLineLog(logger, 'info', 'request');
  app.addHook('onResponse', (request, reply, done) => {
    const { id: requestId, method, routeOptions } = request;
    const ms = Math.round(reply.elapsedTime * 1000) / 1000;
    logRequest({ requestId, method, route: routeOptions.url, status: reply.statusCode, ms });
    done();
  });
}
