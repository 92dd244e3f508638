import { expect, inject, it, onTestFinished } from 'vitest';
import type { Answer } from '../testing/api.ts';
import { cookieOf } from '../testing/caller.ts';
import { type OpenApiDocument, type Operation, type Parameter, readDocument } from '../testing/document.ts';
import { OidcBrowser, someoneAt } from '../testing/oidc-browser.ts';
import { type OidcIssuer, startOidcIssuer } from '../testing/oidc-issuer.ts';
import { type OwnInstance, startInstanceForTest } from '../testing/own-instance.ts';
import { codeAt } from '../testing/two-factor.ts';

/** What an operation is sent: one of its bodies, and parameters by name. */
interface Sent {
  readonly body?: string | Uint8Array<ArrayBuffer>;
  readonly parameters: ReadonlyArray<readonly [Parameter, string]>;
}

let issuer: OidcIssuer;
let instance: OwnInstance;
let document: OpenApiDocument;
/** What exists only at run time, by the example that stands for it. */
const actual = new Map<string, string>();
const headers: Record<string, string> = {};
const sentOperations = new Set<string>();

function findOperation(operationId: string): { method: string; path: string; operation: Operation } {
  for (const [path, methods] of Object.entries(document.paths)) {
    for (const [method, operation] of Object.entries(methods))
      if (operation.operationId === operationId) return { method: method.toUpperCase(), path, operation };
  }
  throw new Error(`The document has no operation ${operationId}`);
}

/** A text of an example, with what exists only at run time put in its place. */
const fill = (text: string) => [...actual].reduce((filled, [example, value]) => filled.replaceAll(example, value), text);

/** All that the examples of an operation can be sent as: each body, and each optional parameter once. */
async function requestsOf({ parameters = [], requestBody }: Operation): Promise<Sent[]> {
  const required = parameters.filter((parameter) => parameter.required).map((parameter) => [parameter, parameter.example]);
  const optional = parameters.filter((parameter) => !parameter.required);
  const [type, { examples = {} } = {}] = Object.entries(requestBody?.content ?? {})[0] ?? [];
  const bodies = await Promise.all(
    Object.values(examples).map(async ({ value, externalValue }) => {
      if (externalValue !== undefined) return new Uint8Array(await (await fetch(externalValue)).arrayBuffer());
      return type === 'application/json' ? JSON.stringify(value) : String(value);
    }),
  );
  const filled = (all: unknown[][]) => all.map(([parameter, value]) => [parameter as Parameter, fill(String(value))] as const);
  return [
    ...(bodies.length > 0 ? bodies : [undefined]).map((body) => ({ ...(body && { body }), parameters: filled(required) })),
    ...optional.map((parameter) => ({
      ...(bodies[0] && { body: bodies[0] }),
      parameters: filled([...required, [parameter, parameter.schema.examples?.[0]]]),
    })),
  ];
}

/** Sends all examples of an operation, with `before` and `after` around each, and returns the responses, which succeed. */
async function sendExamples(
  operationId: string,
  before?: () => Promise<unknown>,
  after?: (answer: Answer) => unknown,
): Promise<Answer[]> {
  sentOperations.add(operationId);
  const { method, path, operation } = findOperation(operationId);
  const [type = ''] = Object.keys(operation.requestBody?.content ?? {});
  const answers: Answer[] = [];
  for (const { body, parameters } of await requestsOf(operation)) {
    await before?.();
    const of = (where: string) =>
      parameters.filter(([parameter]) => parameter.in === where).map(([{ name }, value]) => [name, value]);
    const target = of('path').reduce((filled, [name, value]) => filled.replace(`{${name}}`, String(value)), path);
    const sent = { ...headers, ...Object.fromEntries(of('header')), ...(body && { 'content-type': type }) };
    const answer = await instance.api.with(sent).send(method, target, {
      query: Object.fromEntries(of('query')),
      ...(body && { body: typeof body === 'string' ? fill(body) : body }),
    });
    expect([answer.status, answer.text.slice(0, 300)], operationId).toEqual([200, expect.any(String)]);
    after?.(answer);
    answers.push(answer);
  }
  return answers;
}

/** Takes the session that a response opened. */
function takeSession(answer: Answer | undefined): void {
  if (!answer) throw new Error('Nothing was sent');
  headers.cookie = cookieOf(answer.headers);
  headers['x-csrf-token'] = answer.data.csrfToken;
}

const exampleOf = (operationId: string, name: string): string => {
  const parameter = findOperation(operationId).operation.parameters?.find((candidate) => candidate.name === name);
  return String(parameter?.example ?? parameter?.schema.examples?.[0]);
};

const CODE = '123456';
const APPLICATION = 'getApplicationSettings';

async function sendForApplications(): Promise<void> {
  takeSession((await sendExamples('signUp'))[0]);
  await sendExamples('getSession');
  await sendExamples('createApplication');
  const [listed] = await sendExamples('listApplications');
  actual.set(exampleOf(APPLICATION, 'applicationId'), listed?.data[0].id);
  for (const id of [APPLICATION, 'updateApplicationSettings', 'rotateRuntimeKey', 'saveLicenseLevels', 'listLicenseLevels'])
    await sendExamples(id);
  await sendExamples('getAccountLimits');
  const page = await instance.api.with(headers).get('/api/v1/panel/audit-log', { limit: '1' });
  actual.set(exampleOf('listAuditEntries', 'cursor'), page.data.nextCursor);
  await sendExamples('listAuditEntries');
}

async function sendForFiles(): Promise<void> {
  const [fileId = ''] = /[\da-f-]{36}/.exec(JSON.stringify(findOperation('changeFile').operation.requestBody)) ?? [];
  const applicationId = actual.get(exampleOf(APPLICATION, 'applicationId')) as string;
  const remove = async () => {
    const body = { action: 'delete_file', fileId: actual.get(fileId) };
    if (body.fileId) await instance.api.with(headers).post('/api/v1/panel/file-action', body, { applicationId });
  };
  await sendExamples('uploadFile', remove, ({ data }) => actual.set(fileId, data.id));
  for (const id of ['checkFileName', 'getFilesMetadata', 'getFilesTable', 'changeFile']) await sendExamples(id);
}

async function sendForAvatars(): Promise<void> {
  const [uploaded] = await sendExamples('uploadAvatar');
  const url = `${instance.baseUrl}${uploaded?.data.avatarUrl}`;
  sentOperations.add('getAvatar');
  expect((await fetch(url, { headers })).headers.get('content-type')).toBe('image/webp');
  expect((await fetch(url.split('?')[0] as string, { headers })).status).toBe(200);
}

async function sendForApiKeys(): Promise<void> {
  const created = await sendExamples('createApiKey');
  actual.set(exampleOf('updateApiKey', 'id'), created[0]?.data.id);
  for (const id of ['listApiKeys', 'updateApiKey', 'revokeApiKey']) await sendExamples(id);
}

/** Links the account to an issuer; returns who signs in there. */
async function sendForLinking(): Promise<string> {
  const browser = new OidcBrowser(instance.api, issuer, headers.cookie);
  const someone = someoneAt(issuer);
  const [linking] = await sendExamples('linkOidcIssuer');
  browser.jar.take(linking?.headers as Headers);
  // What an issuer sends back exists only at run time, all of it.
  const query = await browser.visit(someone, { url: linking?.data.url });
  const documented = findOperation('finishOidcSignIn').operation.parameters?.map(({ name }) => name);
  expect(documented).toEqual(expect.arrayContaining([...new URLSearchParams(query).keys()]));
  expect((await browser.comeBack(query)).status).toBe(200);
  // With several issuers alone it is the other one that they come back to.
  sentOperations.add('finishOidcSignIn').add('finishOidcSignInAtIssuer');
  await sendExamples('listOidcLinks');
  return someone;
}

async function sendForTwoFactor(someone: string): Promise<void> {
  const [setUp] = await sendExamples('setUpTwoFactor');
  actual.set(CODE, codeAt(setUp?.data.secret, Date.now()));
  const [enabled] = await sendExamples('enableTwoFactor');
  const [forIssuer = '', forDisabling = ''] = enabled?.data.recoveryCodes ?? [];
  const started = await new OidcBrowser(instance.api, issuer).start(exampleOf('startOidcSignIn', 'issuer'));
  expect(started.status).toBe(302);
  sentOperations.add('startOidcSignIn');
  const other = new OidcBrowser(instance.api, issuer);
  other.jar.take(started.headers);
  await other.comeBack(await other.visit(someone, { url: started.headers.get('location') ?? '' }));
  actual.set(CODE, forIssuer);
  const { cookie } = headers;
  headers.cookie = other.jar.header(findOperation('completeOidcSignIn').path);
  await sendExamples('completeOidcSignIn');
  headers.cookie = cookie as string;
  actual.set(CODE, forDisabling);
  for (const id of ['disableTwoFactor', 'unlinkOidcIssuer']) await sendExamples(id);
}

async function sendForEndings(): Promise<void> {
  for (const id of ['deleteApplication', 'signOut']) await sendExamples(id);
  takeSession((await sendExamples('signIn'))[0]);
  await sendExamples('signOutEverywhere');
}

// The document is the same in both shapes.
it.skipIf(inject('latchkeyInstance').shape === 'deployed')('every example of the OpenAPI document succeeds', async () => {
  issuer = await startOidcIssuer();
  onTestFinished(() => issuer.stop());
  // The examples name the issuer as the documents do.
  const env = Object.entries(issuer.env).map(([name, value]) => [
    name.replace('_CORP_', '_ACME_'),
    value.replace(/^corp$/, 'acme'),
  ]);
  instance = await startInstanceForTest({ env: Object.fromEntries(env) });
  document = await readDocument(instance.baseUrl);
  await sendForApplications();
  await sendForFiles();
  await sendForAvatars();
  await sendForApiKeys();
  await sendForTwoFactor(await sendForLinking());
  await sendForEndings();
  const all = Object.values(document.paths).flatMap((methods) => Object.values(methods).map(({ operationId }) => operationId));
  expect(sentOperations).toEqual(new Set(all));
});
