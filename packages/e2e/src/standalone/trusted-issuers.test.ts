import { beforeAll, expect, it } from 'vitest';
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

it('a token of a job uploads a file, until its issuer is no longer trusted', async () => {
  const sub = unique('system:serviceaccount:ci:');
  const applicationId = await createApplication(owner.session);
  const restricted = { allApplications: undefined, applicationIds: [applicationId] };
  const { data: trusted } = await owner.session.post(PATH, settings(sub, restricted));
  expect(trusted).toMatchObject({ issuer: ISSUER, claims: { sub }, allApplications: false, applicationIds: [applicationId] });
  expect((await owner.session.get(PATH)).data).toEqual([trusted]);
  const form = exchangeForm(await issuer.sign({ iss: ISSUER, aud: [AUDIENCE], sub }), { audience: AUDIENCE });
  const { status, headers, json } = await postToken(baseUrl, form);
  expect([status, headers.get('cache-control')]).toEqual([200, 'no-store']);
  expect(json).toEqual({
    access_token: expect.stringMatching(/^lk_mgmt_/),
    issued_token_type: 'urn:ietf:params:oauth:token-type:access_token',
    token_type: 'Bearer',
    expires_in: 300,
    scope: 'files:upload files:read',
  });
  const again = await postToken(baseUrl, form);
  expect([again.status, again.json.error]).toEqual([400, 'invalid_request']);
  const job = new Api(baseUrl, { authorization: `Bearer ${json.access_token}` });
  expect(outcome(await upload(job, applicationId, 'built.zip'))).toBe('200');
  const [key] = (await owner.session.get('/api/v1/panel/api-keys')).data;
  expect(key).toMatchObject({ name: 'Cluster', issuer: ISSUER, subject: sub });
  expect(outcome(await owner.session.delete(`${PATH}/${trusted.id}`))).toBe('200');
  expect(outcome(await job.get('/api/v1/panel/get-files-metadata', { applicationId }))).toBe('401 api_key_revoked');
});

it('trusting an issuer needs a code where the account has a second factor, which a rejected request leaves unused', async () => {
  const guarded = await signUpGuarded();
  const create = async (change: object) => outcome(await guarded.session.post(PATH, settings(unique(), change)));
  const code = guarded.nextCode();
  expect([await create({}), await create({ code: guarded.wrongCode() })]).toEqual(['401 two_factor_required', '400 bad_request']);
  expect(await create({ code, lifetimeSeconds: 59 })).toBe('400 VALIDATION_ERROR');
  expect(await create({ code })).toBe('200');
});

it.each([
  { issuer: 'http://issuer.example', jwks: undefined },
  { claims: { iss: ISSUER, aud: AUDIENCE } },
  { claims: { repository: ['acme/editor'] } },
  { lifetimeSeconds: 59 },
  { lifetimeSeconds: 901 },
  { jwks: { keys: [{ kty: 'oct', k: 'AAAA' }] } },
  { allApplications: undefined },
  { scopes: [] },
])('settings out of bounds are rejected and named: %j', async (change) => {
  const answer = await owner.session.post(PATH, settings(unique(), change));
  expect(outcome(answer)).toBe('400 VALIDATION_ERROR');
  const path = JSON.parse(answer.text).details[0].path as string;
  const [name] = Object.keys(change);
  expect(path.replace('applicationIds', 'allApplications').split('.').slice(0, 2)).toEqual(['body', name]);
});
