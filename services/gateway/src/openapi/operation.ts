import { z } from 'zod';
import { BYTES_MEDIA_TYPE } from '../http/bytes-body.ts';
import type { Route } from '../routing/route.ts';
import type { ErrorResponses } from './error-responses.ts';
import type { JsonSchema, SchemaCollection } from './schemas.ts';

/** Bytes that nothing checks. */
const BYTES = { type: 'string', format: 'binary', description: 'The bytes, as they are.' };

/** Describes a route. */
export function toOperation(route: Route, schemas: SchemaCollection, errors: ErrorResponses): object {
  const parameters = [
    ...toParameters(route.params, 'path', schemas),
    ...toParameters(route.query, 'query', schemas),
    ...toParameters(route.headers, 'header', schemas),
  ];
  const requestBody = toRequestBody(route, schemas);
  return {
    operationId: route.operationId,
    tags: [route.tag],
    summary: route.summary,
    description: [route.description, accessSentence(route)].filter(Boolean).join('\n\n'),
    security: toSecurity(route),
    ...(parameters.length > 0 && { parameters }),
    ...(requestBody && { requestBody }),
    responses: { ...successResponses(route, schemas), ...errors.of(route) },
  };
}

function accessSentence({ access }: Route): string {
  if (access === 'public') return '';
  return access === 'session' ? 'Needs a dashboard session.' : `Needs the scope \`${access}\`, or a dashboard session.`;
}

function toSecurity({ access, method }: Route): object[] {
  const session = method === 'GET' ? { session: [] } : { session: [], csrf: [] };
  if (access === 'public') return [];
  return access === 'session' ? [session] : [{ managementKey: [] }, session];
}

/** The page of the document sends the `example` of a parameter. Examples of an optional one are in its schema, only shown. */
function toParameters(schema: z.ZodType | undefined, where: 'path' | 'query' | 'header', schemas: SchemaCollection): object[] {
  if (!schema) return [];
  const { properties, required = [] } = schemas.add(schema, 'input') as unknown as ObjectSchema;
  return Object.entries(properties).map(([name, { description, examples = [], ...rest }]) => {
    const base = { name, in: where, ...(description !== undefined && { description }) };
    if (!required.includes(name)) return { ...base, schema: { ...rest, examples } };
    return { ...base, required: true, schema: rest, example: examples[0] };
  });
}

interface ObjectSchema {
  readonly properties: Readonly<Record<string, JsonSchema & { readonly description?: string; readonly examples?: unknown[] }>>;
  readonly required?: readonly string[];
}

function toRequestBody({ body, bytesBody, examples = {} }: Route, schemas: SchemaCollection): object | undefined {
  const media = { examples: Object.fromEntries(Object.entries(examples).map(([name, value]) => [name, toExample(value)])) };
  if (bytesBody) return { required: true, content: { [BYTES_MEDIA_TYPE]: { schema: BYTES, ...media } } };
  return body && { required: true, content: { 'application/json': { schema: schemas.add(body, 'input'), ...media } } };
}

/** Bytes that JSON cannot hold are an example in a URL of their own. */
const toExample = (value: unknown) => (value instanceof URL ? { externalValue: value.href } : { value });

function successResponses(route: Route, schemas: SchemaCollection): Record<string, object> {
  const { bytesResponse, redirects, successHeaders } = route;
  if (bytesResponse)
    return {
      200: { description: 'Success.', content: { [bytesResponse]: { schema: BYTES } } },
      304: { description: 'The entity is the one that `If-None-Match` names.' },
    };
  const location = { Location: { description: 'Where the browser goes next.', schema: { type: 'string', format: 'uri' } } };
  const redirect = redirects && { 302: { description: redirects.when, headers: location } };
  // Tools expect a response of success, and clients of a route that only redirects get none.
  if (redirects?.always) return { ...redirect, default: { description: 'Any other response is an error.' } };
  const schema = schemas.add(toEnvelope(route), 'output');
  return {
    200: {
      description: 'Success.',
      ...(successHeaders && { headers: toHeaders(successHeaders) }),
      content: { 'application/json': { schema } },
    },
    ...redirect,
  };
}

function toHeaders(described: Readonly<Record<string, string>>): object {
  const headers = Object.entries(described).map(([name, description]) => [name, { description, schema: { type: 'string' } }]);
  return Object.fromEntries(headers);
}

function toEnvelope({ message, alternativeMessage, data, beside }: Route): z.ZodType {
  const examples = [message, ...(alternativeMessage === undefined ? [] : [alternativeMessage])];
  const text = z.string().meta({ description: 'What was done, in words: always one of the examples.', examples });
  return z.object({ success: z.literal(true), message: text, ...(data && { data, ...beside }) });
}
