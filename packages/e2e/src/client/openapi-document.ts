import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';

/** The JSON schema of an object, or of one of several. */
export interface ObjectSchema {
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, { readonly minLength?: number }>>;
  readonly oneOf?: readonly ObjectSchema[];
  readonly anyOf?: readonly ObjectSchema[];
}

/** Content of a request or response in one media type. */
export interface Media<Schema = object> {
  readonly schema: Schema;
  readonly examples?: Readonly<Record<string, { readonly value?: unknown }>>;
}

/** The parameters, body and responses of an operation. */
export interface Operation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly parameters?: ReadonlyArray<{
    readonly name: string;
    readonly in: string;
    readonly required?: boolean;
    readonly example?: unknown;
    readonly schema: { readonly examples?: readonly unknown[]; readonly pattern?: string };
  }>;
  readonly requestBody?: { readonly content: Readonly<Record<string, Media<ObjectSchema>>> };
  readonly responses: Readonly<Record<string, { readonly content?: Record<string, Media> }>>;
}

export interface OpenApiDocument {
  readonly openapi: string;
  readonly servers: ReadonlyArray<{ readonly url: string }>;
  readonly tags: ReadonlyArray<{ readonly name: string; readonly description?: string }>;
  readonly components: Readonly<Record<'schemas' | 'examples', Readonly<Record<string, object>>>>;
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation & Record<string, unknown>>>>>;
}

const ajv = new Ajv2020({ strict: false, allErrors: true });
addFormats.default(ajv);
/** Documents by the URL of their instance, and validators by document, operation and status. */
const documents = new Map<string, Promise<OpenApiDocument>>();
const compiled = new WeakMap<OpenApiDocument, Map<string, ValidateFunction>>();

export async function readOpenApiDocument(baseUrl: string): Promise<OpenApiDocument> {
  return (await (await fetch(`${baseUrl}/openapi.json`)).json()) as OpenApiDocument;
}

/**
 * Checks status, schema, error code and message of a response against the OpenAPI document.
 * Unknown routes and methods are not checked.
 *
 * @throws when the response is not as documented
 */
export async function matchOpenApiDocument(
  baseUrl: string,
  { method, path, status }: { method: string; path: string; status: number },
  body: { readonly code?: string; readonly message: string } | '',
): Promise<void> {
  const loading = documents.get(baseUrl) ?? readOpenApiDocument(baseUrl);
  documents.set(baseUrl, loading);
  const document = await loading;
  const template = Object.keys(document.paths).find((candidate) =>
    new RegExp(`^${candidate.replace(/\{[^}]+\}/g, '[^/]+')}$`).test(path),
  );
  const operation = template && document.paths[template]?.[method.toLowerCase()];
  if (!operation) return;
  const name = `${method} ${template} ${status}`;
  if (body === '' && operation.responses[String(status)]) return;
  const media = operation.responses[String(status)]?.content?.['application/json'];
  if (!media || body === '') throw new Error(`${name} is not documented`);
  const { schema, examples } = media as Media<{ properties?: { message: { examples: string[] } } }>;
  const texts = examples ? Object.keys(examples) : schema.properties?.message.examples;
  const text = body.code ?? body.message;
  if (!texts?.includes(text)) throw new Error(`${name} is not documented with "${text}"`);
  const validators = compiled.get(document) ?? new Map<string, ValidateFunction>();
  compiled.set(document, validators);
  const validate = validators.get(name) ?? ajv.compile({ ...schema, components: document.components });
  validators.set(name, validate);
  if (!validate(body))
    throw new Error(`${name} is not as documented: ${ajv.errorsText(validate.errors)} in ${JSON.stringify(body)}`);
}
