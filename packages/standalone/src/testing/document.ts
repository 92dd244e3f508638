import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';

/** The JSON schema of an object, or of one of several. */
export interface ObjectSchema {
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, { readonly minLength?: number }>>;
  readonly oneOf?: readonly ObjectSchema[];
  readonly anyOf?: readonly ObjectSchema[];
}

interface Operation {
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: ObjectSchema }>> };
  readonly responses: Readonly<Record<string, { readonly content?: Record<string, { readonly schema: object }> }>>;
}

/** The OpenAPI document of an instance, as far as the tests look into it. */
export interface OpenApiDocument {
  readonly openapi: string;
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation & Record<string, unknown>>>>>;
}

interface Matcher {
  readonly document: OpenApiDocument;
  readonly ajv: Ajv2020;
  readonly compiled: Map<string, ValidateFunction>;
}

const matchers = new Map<string, Promise<Matcher>>();

/**
 * Checks an answer against what the OpenAPI document says of it. What the document does not mention is not checked: unknown routes, and
 * methods that a route does not have.
 *
 * @throws when the status is not documented, or the body is not what it should be
 */
export async function matchDocument(baseUrl: string, method: string, path: string, status: number, body: unknown): Promise<void> {
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
  const schema = operation.responses[String(status)]?.content?.['application/json']?.schema;
  if (!schema) throw new Error(`${name} is not documented`);
  let validate = compiled.get(name);
  if (!validate) {
    validate = ajv.compile(schema);
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
