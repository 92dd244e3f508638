import { createTestDatabase, type TestDatabase } from '@latchkey/testkit/database';
import { testRedis } from '@latchkey/testkit/redis';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import {
  migrateIdentity,
  outcomeOf,
  startTestIdentity,
  type TestIdentity,
  type TestInstance,
} from '../testing/identity.fixture.ts';
import { REDIRECT_URI, startTestIssuer, type TestIssuer } from '../testing/issuer.fixture.ts';
import { comeBack, stateOf } from '../testing/oidc-flow.fixture.ts';

/** One issuer must not pass for another (RFC 9700, 4.4), whether or not it says in its answers who it is. */
let database: TestDatabase;
let identity: TestIdentity;
let instance: TestInstance;
let honest: TestIssuer;
let hostile: TestIssuer;

beforeAll(async () => {
  [honest, hostile] = await Promise.all([startTestIssuer(), startTestIssuer()]);
  database = await createTestDatabase({ schema: 'identity', migrate: migrateIdentity });
  identity = await startTestIdentity({ databaseUrl: database.url, redisUrl: (await testRedis()).url });
});
afterAll(async () => {
  await identity.stop();
  await database.drop();
  await Promise.all([honest.stop(), hostile.stop()]);
});

const codesSent = () => [...honest.asked, ...hostile.asked].filter((path) => path === '/token').length;
const start = (issuer: string, of = instance) => of.oidc.startOidc({ issuer, redirectUri: REDIRECT_URI });
const partOf = (url: string, name: string) => new URL(url).searchParams.get(name) ?? '';

test('of several issuers each sends browsers back to a place of its own, and the only one to the place of all', async () => {
  const both = { ...hostile.env('hostile'), ...honest.env('honest'), OIDC_ISSUERS: 'honest,hostile' };
  // Then a public client needs no secret, and no word of who answers, to be told apart.
  instance = await identity.connect({ env: { ...both, OIDC_HONEST_CLIENT_SECRET: '' } });
  honest.metadata = { authorization_response_iss_parameter_supported: false };
  const placeOf = async (name: string, of = instance) => partOf((await start(name, of)).authorizationUrl, 'redirect_uri');
  expect([await placeOf('honest'), await placeOf('hostile')]).toEqual([`${REDIRECT_URI}/honest`, `${REDIRECT_URI}/hostile`]);
  const alone = await identity.connect({ env: honest.env('honest') });
  expect(await placeOf('honest', alone)).toBe(REDIRECT_URI);
});

describe.each([
  ['that say who they are', {}],
  ['that do not', { authorization_response_iss_parameter_supported: false }],
])('of two issuers %s,', (_what, metadata) => {
  const iss = 'authorization_response_iss_parameter_supported' in metadata ? { iss: '' } : {};

  beforeAll(async () => {
    const env = { ...hostile.env('hostile'), ...honest.env('honest'), OIDC_ISSUERS: 'honest,hostile' };
    instance = await identity.connect({ env });
  });
  beforeEach(() => {
    for (const one of [honest, hostile]) {
      one.reset();
      one.metadata = metadata;
    }
  });

  test('one that sends its visitor on to the other, for the flow of somebody else, gets no code', async () => {
    const before = await stateOf(identity);
    const mine = await start('honest');
    const victim = await start('hostile');
    const forwarded = new URL(mine.authorizationUrl);
    forwarded.searchParams.set('state', partOf(victim.authorizationUrl, 'state'));
    const answer = { ...honest.authorize(forwarded.href), ...iss };
    const sent = codesSent();
    const back = { ...answer, flow: victim.flow, redirectUri: `${REDIRECT_URI}/honest` };
    expect(await outcomeOf(instance.oidc.finishOidc(back))).toBe('oidc_flow_invalid');
    expect(codesSent()).toBe(sent);
    expect(await stateOf(identity)).toEqual(before);
  });

  test('one that got a code of the other all the same, at a place that this should not send to, can’t use it', async () => {
    const before = await stateOf(identity);
    const mine = await start('honest');
    const forwarded = new URL(mine.authorizationUrl);
    forwarded.searchParams.set('redirect_uri', `${REDIRECT_URI}/hostile`);
    const { code } = honest.authorize(forwarded.href);
    const answer = { code, state: partOf(mine.authorizationUrl, 'state'), iss: honest.url };
    const back = { ...answer, flow: mine.flow, redirectUri: `${REDIRECT_URI}/honest` };
    expect(await outcomeOf(instance.oidc.finishOidc(back))).toBe('oidc_refused');
    expect(await stateOf(identity)).toEqual(before);
  });

  test.each([
    ['of the other', `${REDIRECT_URI}/hostile`],
    ['of all', REDIRECT_URI],
    ['of nobody', `${REDIRECT_URI}/nobody`],
    ['nowhere', ''],
  ])('a flow that comes back to a place %s is refused, and no code is sent', async (_where, redirectUri) => {
    const back = await comeBack(instance, honest, { issuerName: 'honest' });
    const sent = codesSent();
    expect(await outcomeOf(instance.oidc.finishOidc({ ...back, redirectUri }))).toBe('oidc_flow_invalid');
    expect(codesSent()).toBe(sent);
  });

  test('the answer of one is nothing to a flow of the other, wherever it comes', async () => {
    const before = await stateOf(identity);
    const [gone, elsewhere] = [
      await comeBack(instance, honest, { issuerName: 'honest' }),
      await comeBack(instance, hostile, { issuerName: 'hostile' }),
    ];
    for (const [one, other] of [
      [gone, elsewhere],
      [elsewhere, gone],
    ]) {
      const mixed = { ...other, ...iss, flow: one?.flow ?? '', state: one?.state ?? '' };
      expect(await outcomeOf(instance.oidc.finishOidc(mixed))).toBe('oidc_flow_invalid');
      const here = { ...mixed, redirectUri: one?.redirectUri ?? '' };
      expect(await outcomeOf(instance.oidc.finishOidc(here))).toBe('oidc_refused');
    }
    expect(await stateOf(identity)).toEqual(before);
  });
});
