import swagger from '@fastify/swagger';
import swaggerUi from '@fastify/swagger-ui';
import type { FastifyInstance } from 'fastify';
import { toOpenApiDocument } from './openapi/document.ts';
import type { Route } from './route/route.ts';

/** Serves the OpenAPI 3.1 document of routes, and a page to read it. */
export async function registerOpenApi(app: FastifyInstance, routes: readonly Route[]): Promise<void> {
  const document = toOpenApiDocument(routes);
  await app.register(swagger, { mode: 'static', specification: { document: document as never } });
  await app.register(swaggerUi, {
    routePrefix: '/docs',
    staticCSP: true,
    // The page also has to work where the service is reached by plain HTTP.
    transformStaticCSP: (policy) => policy.replace('upgrade-insecure-requests;', ''),
    theme: { title: 'Latchkey API' },
    uiConfig: { docExpansion: 'list', deepLinking: true, layout: 'BaseLayout' },
  });
  // One copy for all, however many clients are slow to read it.
  const bytes = Buffer.from(JSON.stringify(document));
  app.get('/openapi.json', (_request, reply) => reply.type('application/json; charset=utf-8').send(bytes));
}
