import { beforeAll, describe, expect, it } from 'vitest';
import { Api } from '../client/api.ts';
import { createApplication, type Owner, sharedApi, signUp, unique } from '../client/caller.ts';
import { outcome, upload } from '../client/files.ts';
import { createOfflineIssuer, exchangeForm, type OfflineIssuer, postToken } from '../client/token.ts';
import { signUpGuarded } from '../client/two-factor.ts';

const PATH = '/api/v1/panel/trusted-issuers';
const { baseUrl } = sharedApi();
const ISSUER = 'https://kubernetes.default.svc';
const AUDIENCE = 'https://latchkey.test';
let issuer: OfflineIssuer;
let owner: Owner;
beforeAll(async () => {
  [issuer, owner] = [await createOfflineIssuer(), await signUp()];
});

const settings = (sub: string, more: object = {}) => ({
  ...{ name: 'Cluster', issuer: ISSUER, jwks: issuer.jwks, audience: AUDIENCE, claims: { sub } },
  ...{ scopes: ['files:upload', 'files:read'], allApplications: true, lifetimeSeconds: 300 },
  ...more,
});
const sign = (sub: string) => issuer.sign({ iss: ISSUER, aud: [AUDIENCE], sub });
const exchange = async (sub: string, more = {}) => postToken(baseUrl, exchangeForm(await sign(sub), more));
const withKey = ({ access_token }: Readonly<Record<string, string>>) =>
  new Api(baseUrl, { authorization: `Bearer ${access_token}` });

it('a token of a job uploads a file, until its issuer is no longer trusted', async () => {
  const sub = unique('system:serviceaccount:ci:');
  const applicationId = await createApplication(owner.session);
  const other = await createApplication(owner.session);
  const restricted = { allApplications: undefined, applicationIds: [applicationId] };
  const { data: trusted } = await owner.session.post(PATH, settings(sub, restricted));
  expect(trusted).toMatchObject({ issuer: ISSUER, claims: { sub }, allApplications: false, applicationIds: [applicationId] });
  expect((await owner.session.get(PATH)).data).toEqual([trusted]);
  const { status, headers, json } = await exchange(sub, { audience: AUDIENCE });
  expect([status, headers.get('cache-control')]).toEqual([200, 'no-store']);
  expect(json).toEqual({
    access_token: expect.stringMatching(/^lk_mgmt_/),
    issued_token_type: 'urn:ietf:params:oauth:token-type:access_token',
    token_type: 'Bearer',
    expires_in: 300,
    scope: 'files:upload files:read',
  });
  const job = withKey(json);
  expect(outcome(await upload(job, applicationId, 'built.zip'))).toBe('200');
  expect(outcome(await upload(job, other, 'built.zip'))).toBe('403 application_forbidden');
  const [key] = (await owner.session.get('/api/v1/panel/api-keys')).data;
  expect(key).toMatchObject({ name: 'Cluster', issuer: ISSUER, subject: sub });
  const { entries } = (await owner.session.get('/api/v1/panel/audit-log', { action: 'api_key.exchanged' })).data;
  expect(entries).toMatchObject([{ subject: { kind: 'api_key', id: key.id }, changes: { issuer: ISSUER, subject: sub } }]);
  expect(outcome(await owner.session.delete(`${PATH}/${trusted.id}`))).toBe('200');
  expect(outcome(await job.get('/api/v1/panel/get-files-metadata', { applicationId }))).toBe('401 api_key_revoked');
  expect((await exchange(sub)).json.error).toBe('invalid_request');
});

it('a token is exchanged once, with an error of RFC 6749', async () => {
  const sub = unique();
  await owner.session.post(PATH, settings(sub));
  const more = { subject_token_type: 'urn:ietf:params:oauth:token-type:id_token' };
  const token = await sign(sub);
  const beyond = await postToken(baseUrl, exchangeForm(token, { ...more, scope: 'files:read files:delete' }));
  expect([beyond.status, beyond.json.error]).toEqual([400, 'invalid_scope']);
  const form = exchangeForm(token, { ...more, scope: 'files:read' });
  expect(await postToken(baseUrl, form)).toMatchObject({ status: 200, json: { scope: 'files:read' } });
  expect(await postToken(baseUrl, form)).toMatchObject({
    status: 400,
    json: { error: 'invalid_request', error_description: 'The token was exchanged before. Request a new one.' },
  });
});

describe('trusting an issuer', () => {
  it('needs a code where the account has a second factor', async () => {
    const guarded = await signUpGuarded();
    const create = async (code?: string) => outcome(await guarded.session.post(PATH, settings(unique(), { code })));
    expect(await create()).toBe('401 two_factor_required');
    expect(await create(guarded.wrongCode())).toBe('400 bad_request');
    expect(await create(guarded.nextCode())).toBe('200');
  });

  it('uses a code up with the creation alone, and replays it with its key', async () => {
    const guarded = await signUpGuarded();
    const body = settings(unique(), { code: guarded.nextCode() });
    const rejected = [{ issuer: 'http://issuer.example', jwks: undefined }, { lifetimeSeconds: 59 }];
    for (const change of rejected)
      expect(outcome(await guarded.session.post(PATH, { ...body, ...change }))).toBe('400 VALIDATION_ERROR');
    const api = guarded.session.with({ 'idempotency-key': unique() });
    const [first, second] = [await api.post(PATH, body), await api.post(PATH, body)];
    expect([first.status, second.headers.get('idempotency-replayed'), second.text]).toEqual([200, 'true', first.text]);
  });

  it('rejects settings out of bounds, and names them', async () => {
    const wrong = [
      { issuer: 'http://issuer.example', jwks: undefined },
      { claims: { iss: ISSUER, aud: AUDIENCE } },
      { claims: { repository: ['acme/editor'] } },
      { lifetimeSeconds: 59 },
      { lifetimeSeconds: 901 },
      { jwks: { keys: [{ kty: 'oct', k: 'AAAA' }] } },
      { allApplications: undefined },
      { scopes: [] },
    ];
    for (const change of wrong) {
      const answer = await owner.session.post(PATH, settings(unique(), change));
      expect(outcome(answer), JSON.stringify(change)).toBe('400 VALIDATION_ERROR');
      const [name] = Object.keys(change);
      const path = JSON.parse(answer.text).details[0].path as string;
      expect(path.replace('applicationIds', 'allApplications').split('.').slice(0, 2)).toEqual(['body', name]);
    }
  });
});
