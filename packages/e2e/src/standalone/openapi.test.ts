import { hash } from 'node:crypto';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Validator } from '@seriousme/openapi-schema-validator';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { beforeAll, describe, expect, it } from 'vitest';
import { createApplication, sharedApi, signUp } from '../client/caller.ts';
import { type OpenApiDocument, type Operation, readOpenApiDocument } from '../client/openapi-document.ts';
import { KEY_ROUTES, nameOf, SESSION_ROUTES, uploadHead } from '../client/routes.ts';

const { baseUrl } = sharedApi();
const ROOT = join(import.meta.dirname, '../../../..');
/** The one route whose success has no envelope. */
const REDIRECT = '/api/v1/auth/oidc/start';
const OPEN_ROUTES = ['sign-up', 'sign-in', 'token', 'oidc/complete', 'password/forgot', 'password/reset'].map(
  (name) => `POST /api/v1/auth/${name}`,
);
const METHODS = 'GET /api/v1/auth/methods';
const TUS = 'OPTIONS /api/v1/panel/uploads';
const SUCCESSES: Record<string, string> = {
  [TUS]: '204',
  'POST /api/v1/panel/uploads': '201',
  'PATCH /api/v1/panel/uploads/{id}': '204',
  'DELETE /api/v1/panel/uploads/{id}': '204',
};
const OIDC_ROUTES = ['start', 'callback', 'callback/{issuer}'].map((name) => `GET /api/v1/auth/oidc/${name}`);

const FEED_NAMES = ['latest.yml', 'latest-mac.yml', 'latest-linux.yml', 'latest-linux-arm64.yml', 'appcast.xml', 'latest.json'];
const FEEDS = [...FEED_NAMES, 'tauri/{target}/{arch}/{version}', 'download/{token}/{name}'].map(
  (name) => `GET /api/v1/updates/{applicationId}/{channel}/${name}`,
);

/** A response without an end. */
const STREAM = 'GET /api/v1/auth/changes';

const EXAMPLE_ID = '019a9e41-0b7d-7a06-9f52-3c8e1d4b7a15';

let document: OpenApiDocument;
let operations: ReadonlyMap<string, Operation & Record<string, unknown>>;
beforeAll(async () => {
  document = await readOpenApiDocument(baseUrl);
  const entries = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => [`${method.toUpperCase()} ${path}`, operation] as const),
  );
  operations = new Map(entries);
});
const template = (name: string) => name.replace(':id', '{id}');

describe('the OpenAPI document', () => {
  it('is valid OpenAPI 3.1, served relative to where it was found', async () => {
    expect(document.openapi).toMatch(/^3\.1\./);
    const result = await new Validator().validate(structuredClone(document) as unknown as Record<string, unknown>);
    expect(result).toEqual({ valid: true });
    expect(document.servers).toEqual([{ url: '/' }]);
  });

  it('describes every route, each with its credentials and scope, and no other', () => {
    const expected = [...KEY_ROUTES, ...SESSION_ROUTES].map((route) => template(nameOf(route)));
    expect(new Set(operations.keys())).toEqual(
      new Set([...expected, ...OPEN_ROUTES, METHODS, TUS, ...OIDC_ROUTES, ...FEEDS, STREAM]),
    );
    for (const route of [...KEY_ROUTES, ...SESSION_ROUTES]) {
      const operation = operations.get(template(nameOf(route)));
      const session = route.method === 'GET' ? { session: [] } : { session: [], csrf: [] };
      expect(operation?.security, nameOf(route)).toEqual(route.scope ? [{ managementKey: [] }, session] : [session]);
      if (route.scope) expect(operation?.description).toContain(`\`${route.scope}\``);
    }
  });

  it('has every route that the documents name, with that method', () => {
    const text = globSync(['README.md', 'docs/*.md'], { cwd: ROOT }).map((path) => readFileSync(join(ROOT, path), 'utf8'));
    const named = [...text.join().matchAll(/\b(GET|POST|PUT|PATCH|DELETE) (\/api\/v1\/[\w/{}-]+)/g)].map(([name]) => name);
    expect(named.length).toBeGreaterThan(10);
    expect([...operations.keys()]).toEqual(expect.arrayContaining(named.filter((name) => name !== 'GET /api/v1/realtime')));
  });

  it('describes the failures of every route by one schema for all errors, with details of up to 10 inputs', () => {
    for (const [name, { responses }] of operations) {
      // Errors of this one are those of RFC 6749.
      if (name === 'POST /api/v1/auth/token') continue;
      const success = name.endsWith(REDIRECT) || name.includes('/download/') ? '302' : (SUCCESSES[name] ?? '200');
      expect(Object.keys(responses), name).toEqual(expect.arrayContaining([success, '429', '500', '503']));
      for (const [status, { content }] of Object.entries(responses).filter(([code]) => Number(code) >= 400))
        expect(content?.['application/json']?.schema, `${name} ${status}`).toEqual({ $ref: '#/components/schemas/Error' });
    }
    expect(document.components.schemas.Error).toMatchObject({ properties: { details: { type: 'array', maxItems: 10 } } });
  });

  it('names every operation once, in camel case, under a tag with a description', () => {
    const names = [...operations.values()].map(({ operationId }) => operationId);
    expect(new Set(names).size).toBe(names.length);
    for (const name of names) expect(name).toMatch(/^[a-z]+([A-Z][a-z\d]+)+$/);
    const described = document.tags.filter(({ description }) => description).map(({ name }) => name);
    expect(new Set([...operations.values()].flatMap(({ tags }) => tags))).toEqual(new Set(described));
  });

  it('has components that are all referred to, and no other reference', () => {
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

  it('has an example of every parameter and body, and bodies that match their schemas', () => {
    const ajv = new Ajv2020({ strict: false });
    addFormats.default(ajv);
    for (const [name, { parameters = [], requestBody }] of operations) {
      for (const { name: parameter, required = false, example, schema } of parameters)
        expect(required ? example : schema.examples?.[0], `${name} ${parameter}`).toBeDefined();
      for (const [type, { schema, examples = {} }] of Object.entries(requestBody?.content ?? {})) {
        // Generators reject a `data:` URL as an example of bytes.
        expect(JSON.stringify(examples), name).not.toContain('externalValue');
        if (type !== 'application/json') continue;
        expect(examples, name).not.toEqual({});
        const validate = ajv.compile({ ...schema, components: document.components });
        for (const { value } of Object.values(examples))
          expect([name, validate(value), validate.errors]).toEqual([name, true, null]);
      }
    }
  });

  it.each([
    ['PATCH /api/v1/panel/update-application-settings', { field: 'status', value: true }],
    ['POST /api/v1/panel/file-action', { action: 'change_file_name', fileId: EXAMPLE_ID }],
    [
      'POST /api/v1/panel/api-keys',
      { name: 'A key', scopes: ['files:read'], allApplications: true, applicationIds: [EXAMPLE_ID] },
    ],
    ['PATCH /api/v1/panel/release-settings', {}],
    ['POST /api/v1/auth/password/reset', { token: 'a', newPassword: 'a password with \0' }],
  ])('has a schema for %s that rejects %j', (name, body) => {
    const schema = operations.get(name)?.requestBody?.content['application/json']?.schema ?? expect.fail();
    const ajv = new Ajv2020({ strict: false });
    addFormats.default(ajv);
    expect(ajv.validate({ ...schema, components: document.components }, body)).toBe(false);
  });

  it('has patterns of headers that allow what the routes accept', async () => {
    const owner = await signUp();
    const applicationId = await createApplication(owner.session);
    const { 'upload-metadata': metadata = '', ...tus } = uploadHead(applicationId, 'setup.exe', 1, { replace: 'true' });
    const digest = `sha-256=:${hash('sha256', 'x', 'base64')}:`;
    const query = { applicationId, fileName: 'other.exe', replace: 'true' };
    const bytes = { 'content-type': 'application/octet-stream' };
    const upload = { path: '/api/v1/panel/upload-file', query, body: 'x', headers: bytes };
    const creation = { path: '/api/v1/panel/uploads', query: {}, body: null, headers: tus };
    const cases = [
      [creation, 'upload-metadata', metadata, true],
      [creation, 'upload-metadata', `filetype,${metadata.split(',').reverse().join(' , ')}, a/b YQ`, true],
      [creation, 'upload-metadata', `${metadata},x !`, false],
      [creation, 'upload-metadata', `${metadata},`, false],
      [upload, 'content-digest', digest, true],
      [upload, 'content-digest', `sha-512=:AAAA:, ${digest}`, true],
      [upload, 'content-digest', 'x=:AAE:', true],
      [upload, 'content-digest', 'sha-512=AAAA', false],
      [upload, 'content-digest', `${digest},`, false],
    ] as const;
    for (const [{ path, headers, ...sent }, name, value, isValid] of cases) {
      const { schema } = operations.get(`POST ${path}`)?.parameters?.find((one) => one.name === name) ?? expect.fail();
      const { code, data } = await owner.session.send('POST', path, { ...sent, headers: { ...headers, [name]: value } });
      const isMatch = new RegExp(schema.pattern ?? '', 'u').test(value);
      expect([isMatch, code], value).toEqual([isValid, isValid ? '' : 'VALIDATION_ERROR']);
      // Its name is free for the next one.
      if (isValid && name === 'upload-metadata') await owner.session.delete(`${path}/${data.id}`, null, { headers: tus });
    }
  });

  it('has examples of bodies and parameters that the routes accept', async () => {
    const { session } = await signUp();
    const applicationId = await createApplication(session);
    for (const [name, { parameters = [], requestBody }] of operations) {
      if (name === STREAM) continue;
      const [method = '', path = ''] = name.split(' ');
      // Without its cookie, no example ends the session.
      const api = path.includes('/auth/sign') ? sharedApi() : session;
      const values = parameters.map((one) => ({ ...one, value: String(one.example ?? one.schema.examples?.[0]) }));
      const target = values.reduce((filled, one) => filled.replace(`{${one.name}}`, one.value), path);
      // A cursor is of its page; an action and an application exclude each other.
      const isSent = (one: { in: string; name: string }) => one.in === 'query' && !['cursor', 'action'].includes(one.name);
      const query = values.filter(isSent).map((one) => [one.name, one.value]);
      const [[type = '', { examples = {} } = {}] = []] = Object.entries(requestBody?.content ?? {});
      // Its example has no token.
      if (type === 'application/x-www-form-urlencoded') continue;
      const bodies = type === 'application/json' ? Object.values(examples).map(({ value }) => JSON.stringify(value)) : ['bytes'];
      for (const body of type === '' ? [null] : bodies) {
        const sent = { query: Object.fromEntries(query), body, headers: { ...(type && { 'content-type': type }) } };
        if (query.some(([one]) => one === 'applicationId')) sent.query.applicationId = applicationId;
        const { code, text } = await api.send(method, target, sent);
        expect(code, `${name} ${text}`).not.toBe('VALIDATION_ERROR');
      }
    }
  });

  it('contains no secret and no trace of the machine that made it', () => {
    expect(JSON.stringify(document)).not.toMatch(/\/(work|home|tmp)\/|node_modules|postgres|redis|lk_mgmt_0/);
  });
});

it('the page that shows it loads with all its assets, from its own origin alone', async () => {
  const response = await fetch(`${baseUrl}/docs/`);
  const policy = response.headers.get('content-security-policy') ?? '';
  const sources = policy.split(';').map((directive) => directive.trim().split(' ').slice(1).join(' '));
  expect(policy).toMatch(/^default-src 'self'/);
  // Icons of the page are part of its styles.
  expect(sources.filter((source) => source !== "'self'" && source !== "'none'")).toEqual(["'self' data:"]);
  const assets = [...(await response.text()).matchAll(/(?:src|href)="([^"]+)"/g)].map(
    ([, url = '']) => new URL(url, response.url),
  );
  expect(assets.length).toBeGreaterThanOrEqual(4);
  for (const asset of assets) expect([asset.origin, (await fetch(asset)).status], asset.href).toEqual([baseUrl, 200]);
  expect(await (await fetch(`${baseUrl}/docs/json`)).json()).toEqual(document);
});
