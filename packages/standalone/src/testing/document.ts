import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';

/** The JSON schema of an object, or of one of several. */
export interface ObjectSchema {
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, { readonly minLength?: number }>>;
  readonly oneOf?: readonly ObjectSchema[];
  readonly anyOf?: readonly ObjectSchema[];
}

/** What may be sent or answered in one media type. */
export interface Media<Schema = object> {
  readonly schema: Schema;
  readonly examples?: Readonly<Record<string, { readonly value?: unknown; readonly externalValue?: string }>>;
}

/** A parameter of an operation. */
export interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly required?: boolean;
  readonly example?: unknown;
  readonly schema: { readonly examples?: readonly unknown[] };
}

/** An operation, as far as the tests look into it. */
export interface Operation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly content: Readonly<Record<string, Media<ObjectSchema>>> };
  readonly responses: Readonly<Record<string, { readonly content?: Record<string, Media> }>>;
}

/** The OpenAPI document of an instance, as far as the tests look into it. */
export interface OpenApiDocument {
  readonly openapi: string;
  readonly servers: ReadonlyArray<{ readonly url: string }>;
  readonly tags: ReadonlyArray<{ readonly name: string; readonly description?: string }>;
  readonly components: Readonly<Record<'schemas' | 'examples', Readonly<Record<string, object>>>>;
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation & Record<string, unknown>>>>>;
}

interface Envelope {
  readonly code?: string;
  readonly message: string;
}

interface Matcher {
  readonly document: OpenApiDocument;
  readonly ajv: Ajv2020;
  readonly compiled: Map<string, ValidateFunction>;
}

const matchers = new Map<string, Promise<Matcher>>();

/**
 * Checks a response against what the OpenAPI document says of it: its schema, the code of an error, the message of a success. What the
 * document does not mention is not checked: unknown routes, and methods that a route does not have.
 *
 * @throws when the status is not documented, or the body is not what it should be
 */
export async function matchDocument(
  baseUrl: string,
  method: string,
  path: string,
  status: number,
  body: Envelope,
): Promise<void> {
  let loading = matchers.get(baseUrl);
  if (!loading) {
    loading = load(baseUrl);
    matchers.set(baseUrl, loading);
  }
  const { document, ajv, compiled } = await loading;
  const template = Object.keys(document.paths).find((candidate) => toPattern(candidate).test(path));
  const operation = template && document.paths[template]?.[method.toLowerCase()];
  if (!operation) return;
  const name = `${method} ${template} ${status}`;
  const media = operation.responses[String(status)]?.content?.['application/json'];
  if (!media) throw new Error(`${name} is not documented`);
  const { schema, examples } = media as Media<{ properties?: { message: { examples: string[] } } }>;
  const texts = examples ? Object.keys(examples) : schema.properties?.message.examples;
  const text = body.code ?? body.message;
  if (!texts?.includes(text)) throw new Error(`${name} is not documented with "${text}"`);
  let validate = compiled.get(name);
  if (!validate) {
    validate = ajv.compile({ ...schema, components: document.components });
    compiled.set(name, validate);
  }
  if (!validate(body))
    throw new Error(`${name} is not as documented: ${ajv.errorsText(validate.errors)} in ${JSON.stringify(body)}`);
}

/** Reads the document of an instance. */
export async function readDocument(baseUrl: string): Promise<OpenApiDocument> {
  return (await (await fetch(`${baseUrl}/openapi.json`)).json()) as OpenApiDocument;
}

async function load(baseUrl: string): Promise<Matcher> {
  const ajv = new Ajv2020({ strict: false, allErrors: true });
  addFormats.default(ajv);
  return { document: await readDocument(baseUrl), ajv, compiled: new Map() };
}

function toPattern(template: string): RegExp {
  return new RegExp(`^${template.replace(/\{[^}]+\}/g, '[^/]+')}$`);
}
