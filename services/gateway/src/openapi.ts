import swagger from '@fastify/swagger';
import swaggerUi from '@fastify/swagger-ui';
import type { FastifyInstance } from 'fastify';
import { jsonSchemaTransform } from 'fastify-type-provider-zod';

const DESCRIPTION = `Manage applications of an application-licensing platform.

Success is always HTTP 200 with \`{success: true, message, data?}\`; a failure is \`{success: false, code, message}\`, where \`code\` is stable.
Every answer carries \`X-Request-Id\`. Limits are told in \`RateLimit\` and \`RateLimit-Policy\`; a 429 carries \`Retry-After\`.

A state-changing request made with a session needs the header \`X-CSRF-Token\`.

Live events are not part of this document: licensed applications hear them over a WebSocket, \`/api/v1/realtime\` on a port of its own (\`REALTIME_PORT\`, 8081 unless set otherwise).
\`/asyncapi.json\` on that port describes it for programs, and \`docs/events.md\` in the repository for people.`;

/** The page and all that it loads and calls are of this origin. */
const CONTENT_SECURITY_POLICY =
  "default-src 'self'; base-uri 'self'; form-action 'self'; frame-ancestors 'self'; object-src 'none'";

/**
 * Serves the OpenAPI 3.1 document, made from the schemas that requests are checked with, and a page to read it.
 *
 * @param publicUrl where clients reach the service; undefined means where they found the document
 */
export async function registerOpenApi(app: FastifyInstance, publicUrl: string | undefined): Promise<void> {
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: { title: 'Latchkey', version: '1', description: DESCRIPTION },
      servers: [{ url: publicUrl ?? '/' }],
      components: {
        securitySchemes: {
          managementKey: { type: 'http', scheme: 'bearer', description: 'Management API key, `lk_mgmt_…`.' },
          session: { type: 'apiKey', in: 'cookie', name: 'session', description: 'Dashboard session.' },
          csrf: { type: 'apiKey', in: 'header', name: 'X-CSRF-Token', description: 'The `csrfToken` of the session.' },
        },
      },
    },
    transform: jsonSchemaTransform,
  });
  await app.register(swaggerUi, {
    routePrefix: '/docs',
    staticCSP: CONTENT_SECURITY_POLICY,
    theme: { title: 'Latchkey API' },
    uiConfig: { docExpansion: 'list', deepLinking: true, layout: 'BaseLayout' },
  });
}

/** The route of the document itself; to be called after all others. */
export function registerOpenApiDocument(app: FastifyInstance): void {
  let document: Buffer | undefined;
  app.get('/openapi.json', { schema: { hide: true } as object }, (_request, reply) => {
    // One copy for all, however many clients are slow to read it.
    document ??= Buffer.from(JSON.stringify(app.swagger()));
    return reply.type('application/json; charset=utf-8').send(document);
  });
}
