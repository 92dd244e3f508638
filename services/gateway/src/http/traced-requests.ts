import { TRACEPARENT_HEADER } from '@latchkey/kit/rpc/route';
import { activeTracer } from '@latchkey/kit/tracing/tracer';
import type { FastifyInstance } from 'fastify';

const CLIENT_GONE = 499;

/**
 * Makes each request the beginning of a trace, where traces are kept. A client's own trace is linked to and no more: it is for the sampler here to say
 * what is kept, and clients are many.
 */
export function traceRequests(app: FastifyInstance): void {
  const tracer = activeTracer();
  if (!tracer) return;
  app.addHook('onRequest', (request, reply, done) => {
    const { method, id, headers } = request;
    const { url: route } = request.routeOptions;
    const span = tracer.start({
      name: route === undefined ? method : `${method} ${route}`,
      kind: 'server',
      attributes: { 'http.request.method': method, ...(route && { 'http.route': route }), 'latchkey.request_id': id },
      link: oneValue(headers[TRACEPARENT_HEADER]),
    });
    reply.raw.once('close', () => {
      const status = reply.raw.writableFinished ? reply.raw.statusCode : CLIENT_GONE;
      span.set({ 'http.response.status_code': status });
      if (status >= 500) span.fail(String(status));
      span.end();
    });
    // Fastify keeps to it over the reading of the body.
    tracer.within(span, done);
  });
}

function oneValue(header: string | string[] | undefined): string | undefined {
  return typeof header === 'string' ? header : undefined;
}
