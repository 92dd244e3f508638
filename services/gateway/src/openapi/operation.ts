import { z } from 'zod';
import { isStateChanging } from '../authentication/csrf.ts';
import { idempotencyHeaders, takesIdempotencyKey } from '../http/idempotency.ts';
import { FORM_TYPE } from '../http/oauth.ts';
import { BYTES_MEDIA_TYPE, CHUNK_MEDIA_TYPE } from '../http/request-body.ts';
import { LARGE_RESPONSES_RULE } from '../routing/large-responses.ts';
import type { Route } from '../routing/route.ts';
import type { ErrorResponses } from './error-responses.ts';

const BYTES = { type: 'string', format: 'binary', description: 'The bytes, as they are.' };

export function toOperation(route: Route, schemas: SchemaCollection, errors: ErrorResponses): object {
  const { access, method, operationId, tag, summary, description } = route;
  const isPublic = access === 'public';
  const need = access === 'session' ? 'Needs a dashboard session.' : `Needs the scope \`${access}\`, or a dashboard session.`;
  const session = !isStateChanging(method) ? { session: [] } : { session: [], csrf: [] };
  const parameters = [
    ...toParameters(route.params, 'path', schemas),
    ...toParameters(route.query, 'query', schemas),
    ...toParameters(route.headers, 'header', schemas),
    ...(takesIdempotencyKey(route) ? toParameters(idempotencyHeaders, 'header', schemas) : []),
  ];
  const requestBody = toRequestBody(route, schemas);
  return {
    operationId,
    tags: [tag],
    summary,
    description: [description, route.isLarge ? LARGE_RESPONSES_RULE : '', isPublic ? '' : need].filter(Boolean).join('\n\n'),
    security: isPublic ? [] : [...(access === 'session' ? [] : [{ managementKey: [] }]), session],
    ...(parameters.length > 0 && { parameters }),
    ...(requestBody && { requestBody }),
    responses: { ...successResponses(route, schemas), ...errors.of(route) },
  };
}

/** The page sends the `example` of a required parameter. */
function toParameters(schema: z.ZodType | undefined, where: 'path' | 'query' | 'header', schemas: SchemaCollection): object[] {
  if (!schema) return [];
  const { properties, required = [] } = schemas.add(schema, 'input') as {
    readonly properties: Readonly<Record<string, JsonSchema & { readonly examples?: readonly unknown[] }>>;
    readonly required?: readonly string[];
  };
  return Object.entries(properties).map(([name, { description, examples = [], ...rest }]) => {
    const base = { name, in: where, ...(description !== undefined && { description }) };
    if (!required.includes(name)) return { ...base, schema: { ...rest, examples } };
    return { ...base, required: true, schema: rest, example: examples[0] };
  });
}

function toRequestBody(
  { body, documentedBody = body, isBodyOptional, bytesBody, isOAuth, examples = {} }: Route,
  schemas: SchemaCollection,
): object | undefined {
  const media = { examples: mapValues(examples, (value) => ({ value })) };
  const bytesType = bytesBody === 'chunk' ? CHUNK_MEDIA_TYPE : BYTES_MEDIA_TYPE;
  if (bytesBody) return { required: !isBodyOptional, content: { [bytesType]: { schema: BYTES, ...media } } };
  const type = isOAuth ? FORM_TYPE : 'application/json';
  if (!documentedBody) return undefined;
  return { required: !isBodyOptional, content: { [type]: { schema: schemas.add(documentedBody, 'input'), ...media } } };
}

function successResponses(route: Route, schemas: SchemaCollection): Record<string, object> {
  const { bytesResponse, redirects, successHeaders } = route;
  if (bytesResponse)
    return {
      200: { description: 'Success.', content: { [bytesResponse]: { schema: BYTES } } },
      ...(bytesResponse !== 'text/event-stream' && { 304: { description: 'The entity is the one that `If-None-Match` names.' } }),
    };
  const location = { Location: { description: 'Where the browser goes next.', schema: { type: 'string', format: 'uri' } } };
  const redirect = redirects && { 302: { description: redirects.when, headers: location } };
  // Tools expect a response of success.
  if (redirects?.always) return { ...redirect, default: { description: 'Any other response is an error.' } };
  const toHeader = (description: string) => ({ description, schema: { type: 'string' } });
  const all = {
    ...successHeaders,
    ...(takesIdempotencyKey(route) && {
      'Idempotency-Replayed': '`true` if this is the response to an earlier request with the same key.',
    }),
  };
  const headers = Object.keys(all).length > 0 && { headers: mapValues(all, toHeader) };
  const { successStatus = 200 } = route;
  if (successStatus === 204) return { 204: { description: 'Success.', ...headers } };
  const schema = route.isOAuth && route.data ? route.data : toEnvelope(route);
  const content = { 'application/json': { schema: schemas.add(schema, 'output') } };
  return { [successStatus]: { description: 'Success.', ...headers, content }, ...redirect };
}

const TOTAL_PAGES = { totalPages: z.int().meta({ examples: [1] }) };

function toEnvelope({ message, alternativeMessage, data, pageSize }: Route): z.ZodType {
  const examples = [message, alternativeMessage].filter((text) => text !== undefined);
  const text = z.string().meta({ description: 'What was done, in words: always one of the examples.', examples });
  return z.object({ success: z.literal(true), message: text, ...(data && { data }), ...(pageSize && TOTAL_PAGES) });
}

function mapValues<T>(record: Readonly<Record<string, T>>, map: (value: T) => object): Record<string, object> {
  return Object.fromEntries(Object.entries(record).map(([name, value]) => [name, map(value)]));
}

type JsonSchema = Record<string, unknown>;

export class SchemaCollection {
  readonly components: Record<string, JsonSchema> = {};

  /**
   * @param io `input` for what clients send, `output` for what they get
   * @throws when two different schemas have the same `id`
   */
  add(schema: z.ZodType, io: 'input' | 'output'): JsonSchema {
    // Zod makes references only of the parts of a schema, never of the whole.
    const json = z.toJSONSchema(z.object({ schema }), { io, unrepresentable: 'any', override });
    const text = JSON.stringify(json).replaceAll('"#/$defs/', '"#/components/schemas/');
    const { properties, $defs = {} } = JSON.parse(text) as {
      properties: { schema: JsonSchema };
      $defs?: Record<string, JsonSchema>;
    };
    for (const [id, component] of Object.entries($defs)) {
      const known = this.components[id];
      if (known && JSON.stringify(known) !== JSON.stringify(component)) throw new Error(`Two schemas have the id ${id}`);
      this.components[id] = component;
    }
    return properties.schema;
  }
}

function override({ zodSchema, jsonSchema }: { zodSchema: z.core.$ZodType; jsonSchema: JsonSchema }): void {
  // Zod drops the examples of transformed values. Ours are always inputs.
  const { examples } = z.globalRegistry.get(zodSchema) ?? {};
  if (examples) jsonSchema.examples = examples;
  if (jsonSchema.type !== 'integer') return;
  // A number in a query is text to Zod.
  delete jsonSchema.pattern;
  if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
}
