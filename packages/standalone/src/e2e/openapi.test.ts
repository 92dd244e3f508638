import { Validator } from '@seriousme/openapi-schema-validator';
import { beforeAll, describe, expect, it } from 'vitest';
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
/** Routes that never answer an envelope of success. */
const REDIRECTS = ['/api/v1/auth/oidc/start'];
const sessionOf = (method: string) => (method === 'GET' ? { session: [] } : { session: [], csrf: [] });
const template = (path: string) => path.replace(':id', '{id}');

describe('the OpenAPI document', () => {
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
