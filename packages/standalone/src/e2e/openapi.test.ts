import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Validator } from '@seriousme/openapi-schema-validator';
import { beforeAll, describe, expect, inject, it } from 'vitest';
import { sharedApi } from '../testing/caller.ts';
import { type OpenApiDocument, readDocument } from '../testing/document.ts';
import { KEY_ROUTES, nameOf, SESSION_ROUTES } from '../testing/routes.ts';

const { baseUrl } = sharedApi();
let document: OpenApiDocument;
beforeAll(async () => {
  document = await readDocument(baseUrl);
});

const PUBLIC_ROUTES = [
  'POST /api/v1/auth/sign-up',
  'POST /api/v1/auth/sign-in',
  'GET /api/v1/auth/oidc/start',
  'GET /api/v1/auth/oidc/callback',
  'GET /api/v1/auth/oidc/callback/{issuer}',
  'POST /api/v1/auth/oidc/complete',
];
const operations = () => Object.values(document.paths).flatMap((methods) => Object.values(methods));
/** Routes that never answer an envelope of success. */
const REDIRECTS = ['/api/v1/auth/oidc/start'];
const sessionOf = (method: string) => (method === 'GET' ? { session: [] } : { session: [], csrf: [] });
const template = (path: string) => path.replace(':id', '{id}');

// It is the same in both shapes.
describe.skipIf(inject('latchkeyInstance').shape === 'deployed')('the OpenAPI document', () => {
  it('is valid OpenAPI 3.1', async () => {
    expect(document.openapi).toMatch(/^3\.1\./);
    const result = await new Validator().validate(structuredClone(document) as unknown as Record<string, unknown>);
    expect(result).toEqual({ valid: true });
  });

  it('describes every route that is built, and no other', () => {
    const expected = [...KEY_ROUTES, ...SESSION_ROUTES].map((route) => template(nameOf(route)));
    const found = Object.entries(document.paths).flatMap(([path, operations]) =>
      Object.keys(operations).map((method) => `${method.toUpperCase()} ${path}`),
    );
    expect(new Set(found)).toEqual(new Set([...expected, ...PUBLIC_ROUTES]));
  });

  it.each(KEY_ROUTES.map((route) => [nameOf(route), route] as const))(
    'names the scope of %s and takes a key or a session',
    (_name, { method, path, scope }) => {
      const operation = document.paths[path]?.[method.toLowerCase()];
      expect(operation?.description).toContain(`\`${scope}\``);
      expect(operation?.security).toEqual([{ managementKey: [] }, sessionOf(method)]);
    },
  );

  it.each(SESSION_ROUTES.map((route) => [template(nameOf(route))] as const))('says that %s takes a session alone', (name) => {
    const [method = '', path = ''] = name.split(' ');
    const operation = document.paths[path]?.[method.toLowerCase()];
    expect(operation?.security).toEqual([sessionOf(method)]);
  });

  it('describes the failures of every route, each with its codes', () => {
    for (const [path, operations] of Object.entries(document.paths)) {
      for (const [method, { responses }] of Object.entries(operations)) {
        const success = REDIRECTS.includes(path) ? '302' : '200';
        expect(Object.keys(responses), `${method} ${path}`).toEqual(expect.arrayContaining([success, '429', '500', '503']));
      }
    }
  });

  it('has every route that the documents name, with that method', () => {
    const root = join(import.meta.dirname, '../../../..');
    const text = globSync(['README.md', 'docs/*.md'], { cwd: root })
      .map((path) => readFileSync(join(root, path), 'utf8'))
      .join();
    const named = [...text.matchAll(/\b(GET|POST|PUT|PATCH|DELETE) (\/api\/v1\/[\w/{}-]+)/g)].map(([name]) => name);
    const described = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
    );
    expect(named.length).toBeGreaterThan(10);
    expect(described).toEqual(expect.arrayContaining(named.filter((name) => name !== 'GET /api/v1/realtime')));
  });

  it('is served relative to where it was found, so that its page works under every name of the instance', () => {
    expect(document.servers).toEqual([{ url: '/' }]);
  });

  it('names every operation once, in camel case, and under a declared tag with a description', () => {
    const names = operations().map(({ operationId }) => operationId);
    expect(new Set(names).size).toBe(names.length);
    for (const name of names) expect(name).toMatch(/^[a-z]+([A-Z][a-z]+)+$/);
    const described = document.tags.filter(({ description }) => description).map(({ name }) => name);
    expect(new Set(operations().flatMap(({ tags }) => tags))).toEqual(new Set(described));
  });

  it('has components that are all referred to, and no reference to anything else', () => {
    const used = new Set([...JSON.stringify(document).matchAll(/"\$ref":"([^"]+)"/g)].map(([, ref]) => ref));
    const { schemas, examples } = document.components;
    const declared = Object.entries({ schemas, examples }).flatMap(([kind, all]) =>
      Object.keys(all).map((name) => `#/components/${kind}/${name}`),
    );
    expect(used).toEqual(new Set(declared));
    expect(Object.keys(schemas)).toEqual(
      expect.arrayContaining(['Error', 'Application', 'ApplicationSettings', 'File', 'ApiKey']),
    );
  });

  it('has one schema for all errors, with details of up to 10 inputs', () => {
    for (const { responses, operationId } of operations()) {
      for (const [status, { content }] of Object.entries(responses).filter(([status]) => Number(status) >= 400))
        expect(content?.['application/json']?.schema, `${operationId} ${status}`).toEqual({ $ref: '#/components/schemas/Error' });
    }
    expect(document.components.schemas.Error).toMatchObject({ properties: { details: { type: 'array', maxItems: 10 } } });
  });

  it('describes messages of success by examples, as they are text to clients', () => {
    const { schema } =
      document.paths['/api/v1/panel/create-application']?.post?.responses[200]?.content?.['application/json'] ?? {};
    const message = { type: 'string', description: expect.any(String), examples: ['Successfully create application'] };
    expect(schema).toMatchObject({ properties: { message } });
  });

  it('has an example of every parameter and body, so that none is made up from a pattern', () => {
    for (const { operationId, parameters = [], requestBody } of operations()) {
      for (const { name, required = false, example, schema } of parameters) {
        const examples = required ? [example] : schema.examples;
        expect(examples?.[0], `${operationId} ${name}`).toBeDefined();
      }
      for (const media of Object.values(requestBody?.content ?? {})) expect(media.examples, operationId).not.toEqual({});
    }
  });

  it('holds no secret and nothing of the machine that it was made on', () => {
    const text = JSON.stringify(document);
    for (const word of ['/work/', '/home/', '/tmp/', 'node_modules', 'postgres', 'redis', 'lk_mgmt_0'])
      expect(text).not.toContain(word);
  });
});

describe('the page that shows it', () => {
  it('loads with all its assets, from its own origin alone', async () => {
    const response = await fetch(`${baseUrl}/docs/`);
    const html = await response.text();
    expect(response.headers.get('content-type')).toMatch(/^text\/html/);
    const policy = response.headers.get('content-security-policy') ?? '';
    const sources = policy.split(';').map((directive) => directive.trim().split(' ').slice(1).join(' '));
    expect(policy).toMatch(/^default-src 'self'/);
    expect(sources.filter((source) => source !== "'self'" && source !== "'none'")).toEqual([]);
    const assets = [...html.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, url]) => new URL(url as string, `${baseUrl}/docs/`));
    expect(assets.length).toBeGreaterThanOrEqual(4);
    for (const asset of assets) {
      expect(asset.origin).toBe(baseUrl);
      const loaded = await fetch(asset);
      expect([loaded.status, (await loaded.arrayBuffer()).byteLength > 0], asset.href).toEqual([200, true]);
    }
  });

  it('is found at /docs too, which leads there', async () => {
    expect((await fetch(`${baseUrl}/docs`)).status).toBe(200);
  });

  it('shows the same document', async () => {
    expect(await (await fetch(`${baseUrl}/docs/json`)).json()).toEqual(document);
  });
});
