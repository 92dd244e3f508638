import swagger from '@fastify/swagger';
import swaggerUi from '@fastify/swagger-ui';
import type { FastifyInstance } from 'fastify';
import { type Route, TAGS } from '../routing/route.ts';
import { ErrorResponses } from './error-responses.ts';
import { SchemaCollection, toOperation } from './operation.ts';
import { PAGE_THEME } from './page-theme.ts';

const DESCRIPTION = `Manage applications of an application-licensing platform.

Success is always HTTP 200 with \`{success: true, message, data?}\`. An error is \`{success: false, code, message, details?}\`, where \`code\` is stable.
With \`VALIDATION_ERROR\` and \`bad_request\`, \`details\` names up to 10 inputs and the rule that each broke: \`{path, message}\`.
Every response carries \`X-Request-Id\`, and the rate limit that is closest in \`RateLimit\` and \`RateLimit-Policy\`. A 429 carries \`Retry-After\`.

A request with a session that changes something needs the header \`X-CSRF-Token\`.

The examples can be sent as they are. Only ids, codes and names of sign-in issuers have to be replaced: each says where to get it.

Live events are not part of this document: licensed applications receive them over a WebSocket, \`/api/v1/realtime\` on a separate port (\`REALTIME_PORT\`, 8081 by default).
\`/asyncapi.json\` on that port describes it for programs, and \`docs/events.md\` in the repository for people.`;

const SECURITY_SCHEMES = {
  managementKey: { type: 'http', scheme: 'bearer', description: 'Management API key, `lk_mgmt_…`.' },
  session: { type: 'apiKey', in: 'cookie', name: 'session', description: 'Dashboard session.' },
  csrf: { type: 'apiKey', in: 'header', name: 'X-CSRF-Token', description: 'The `csrfToken` of the session.' },
};

/** Describes routes as OpenAPI 3.1, from the schemas that check requests. */
export function toOpenApiDocument(routes: readonly Route[]): Record<string, unknown> {
  const schemas = new SchemaCollection();
  const paths: Record<string, Record<string, object>> = {};
  const errors = new ErrorResponses();
  for (const route of routes) {
    const path = route.url.replaceAll(/:(\w+)/g, '{$1}');
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: toOperation(route, schemas, errors) };
  }
  schemas.add(errors.schema(), 'output');
  return {
    openapi: '3.1.0',
    info: {
      title: 'Latchkey',
      version: '1',
      description: DESCRIPTION,
      contact: { name: 'The operator of this instance' },
      license: { name: 'Unlicensed', identifier: 'LicenseRef-Unlicensed' },
    },
    // Relative, since an instance may have several names.
    servers: [{ url: '/' }],
    tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
    paths,
    components: { schemas: schemas.components, examples: errors.examples(), securitySchemes: SECURITY_SCHEMES },
  };
}

/** The page, and all that it loads and calls, is of this origin. */
const CONTENT_SECURITY_POLICY =
  "default-src 'self'; img-src 'self' data:; base-uri 'self'; form-action 'self'; frame-ancestors 'self'; object-src 'none'";

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
    theme: PAGE_THEME,
    uiConfig: { docExpansion: 'list', deepLinking: true, layout: 'BaseLayout' },
  });
  // One copy for all, however many clients are slow to read it.
  let bytes: Buffer | undefined;
  app.get('/openapi.json', (_request, reply) => {
    bytes ??= Buffer.from(JSON.stringify(getDocument()));
    return reply.type('application/json; charset=utf-8').send(bytes);
  });
}
