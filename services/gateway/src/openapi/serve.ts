import swagger from '@fastify/swagger';
import swaggerUi from '@fastify/swagger-ui';
import type { FastifyInstance } from 'fastify';
import type { Route } from '../routing/route.ts';
import { toOpenApiDocument } from './document.ts';

/** The page, and all that it loads and calls, is of this origin. */
const CONTENT_SECURITY_POLICY =
  "default-src 'self'; base-uri 'self'; form-action 'self'; frame-ancestors 'self'; object-src 'none'";

/** Serves the OpenAPI 3.1 document of routes, and a page to read it. */
export async function registerOpenApi(app: FastifyInstance, routes: readonly Route[]): Promise<void> {
  let document: Record<string, unknown> | undefined;
  const getDocument = () => {
    // Made on demand: the conversion of all schemas would delay every start.
    document ??= toOpenApiDocument(routes);
    return document;
  };
  // The page requires this plugin, and takes the document from the transformation below.
  await app.register(swagger, { mode: 'static', specification: { document: {} as never } });
  await app.register(swaggerUi, {
    routePrefix: '/docs',
    transformSpecification: getDocument,
    transformSpecificationClone: false,
    staticCSP: CONTENT_SECURITY_POLICY,
    theme: { title: 'Latchkey API' },
    uiConfig: { docExpansion: 'list', deepLinking: true, layout: 'BaseLayout' },
  });
  // One copy for all, however many clients are slow to read it.
  let bytes: Buffer | undefined;
  app.get('/openapi.json', (_request, reply) => {
    bytes ??= Buffer.from(JSON.stringify(getDocument()));
    return reply.type('application/json; charset=utf-8').send(bytes);
  });
}
