import { randomUUID } from 'node:crypto';
import { refusalOf } from '@latchkey/testkit/refusal';
import { expect, test } from 'vitest';
import { outcomeOf } from '../testing/identity.ts';
import { sendJson } from '../testing/issuer.ts';
import { comeBack, finishAt, openTestOidc, signInAt, someone, stateOf } from '../testing/oidc-flow.ts';
import { present, sessionCredential, signUpSomeone } from '../testing/sample.ts';

const { identity, instance, issuer } = await openTestOidc();

const state = () => stateOf(identity);
const useSession = (token: string) => outcomeOf(instance.authentication.authenticate({ credential: sessionCredential(token) }));

test('a first sign-in creates an account from the claims, later ones open sessions of it', async () => {
  const claims = someone({ picture: 'https://images.test/ada.png' });
  issuer.claims = claims;
  const first = await signInAt(instance, issuer);
  const { preferred_username: username, email, picture: pictureUrl } = claims as Record<string, unknown>;
  expect(first.account).toMatchObject({ username, email, pictureUrl, twoFactorEnabled: false });
  issuer.claims = { sub: claims.sub };
  const second = await signInAt(instance, issuer);
  expect(second.account).toEqual(first.account);
  expect(second.session?.token).not.toBe(first.session?.token);
  expect(await useSession(present(second.session).token)).toBe('done');
});

test('UserInfo adds to a token that says little', async () => {
  const { sub, ...claims } = someone({ picture: 'https://images.test/b.png' });
  issuer.claims = { sub };
  issuer.userInfo = claims;
  const fresh = identity.connect({ env: issuer.env() });
  const { account } = await signInAt(fresh, issuer);
  expect(account).toMatchObject({ username: claims.preferred_username, email: claims.email });
  issuer.answers['/userinfo'] = (_req, res) => sendJson(res, 200, { sub: 'another' });
  expect(await outcomeOf(finishAt(fresh, issuer))).toBe('oidc_refused');
});

test('an account with the same email in any case is neither signed in to nor linked', async () => {
  const { account } = await signUpSomeone(instance);
  const before = await state();
  issuer.claims = someone({ email: account.email.toUpperCase() });
  const error = await refusalOf(finishAt(instance, issuer));
  expect(error).toMatchObject({ reason: 'oidc_email_taken', kind: 'conflict', code: 'account_exists' });
  expect(await state()).toEqual(before);
});

test.each([
  [{ email: undefined }, 'oidc_email_unverified'],
  [{ email_verified: undefined }, 'oidc_email_unverified'],
  [{ email_verified: 1 }, 'oidc_email_unverified'],
  [{ email: 'no address' }, 'oidc_email_unverified'],
  [{ email_verified: 'true' }, 'done'],
])('sign-up with %j ends as %s', async (claims, outcome) => {
  issuer.claims = someone(claims);
  expect(await outcomeOf(finishAt(instance, issuer))).toBe(outcome);
});

test('closed sign-up rejects new persons and accepts linked ones', async () => {
  const known = someone();
  issuer.claims = known;
  await signInAt(instance, issuer);
  const closed = identity.connect({ env: { ...issuer.env(), SIGN_UP: 'closed' } });
  expect(await outcomeOf(signInAt(closed, issuer))).toBe('done');
  issuer.claims = someone();
  expect(await outcomeOf(finishAt(closed, issuer))).toBe('sign_up_closed');
});

test.each([
  [{ preferred_username: 'Zoë Müller' }, 'Zoe-Muller'],
  [{ preferred_username: '李', name: 'grace.hopper@navy.test' }, 'grace-hopper'],
  [{ preferred_username: 42, name: '--' }, 'mail'],
  [{ preferred_username: `a\u0007b${'n'.repeat(29)}-${'m'.repeat(9)}` }, `a-b${'n'.repeat(29)}`],
])('%j makes the username %s', async (names, expected) => {
  issuer.claims = { sub: randomUUID(), email: `mail@${randomUUID()}.test`, email_verified: true, ...names };
  expect((await signInAt(instance, issuer)).account?.username).toBe(expected);
});

test('a username that is taken in any case gets a suffix within its length', async () => {
  const name = `N${randomUUID().replaceAll('-', '').slice(0, 31)}`;
  for (const [preferred_username, username] of [
    [name, name],
    [name.toLowerCase(), expect.stringMatching(/^n[0-9a-f]{24}-[a-z2-9]{6}$/)],
  ]) {
    issuer.claims = someone({ preferred_username });
    expect((await signInAt(instance, issuer)).account?.username).toEqual(username);
  }
});

test('concurrent first sign-ins of one person end in one account', async () => {
  issuer.claims = someone();
  const backs = await Promise.all(Array.from({ length: 8 }, () => comeBack(instance, issuer)));
  const ends = await Promise.all(backs.map((back) => instance.oidc.finishOidc(back)));
  const accounts = ends.map(({ outcome }) => (outcome.case === 'signedIn' ? outcome.value.account?.id : outcome.case));
  expect(new Set(accounts).size).toBe(1);
});

test.each([
  ['http://images.test/a.png', false],
  ['javascript:alert(1)', false],
  ['https://u:p@images.test/a.png', false],
  [`https://images.test/${'ä'.repeat(500)}`, false],
  [7, false],
  [`https://images.test/${'a'.repeat(2_028)}`, true],
])('a later picture %s is taken over: %s', async (picture, isTaken) => {
  const claims = someone({ picture: 'https://images.test/first.png' });
  issuer.claims = claims;
  await signInAt(instance, issuer);
  issuer.claims = { ...claims, picture };
  const { account } = await signInAt(instance, issuer);
  expect(account?.pictureUrl).toBe(isTaken ? picture : 'https://images.test/first.png');
});

test('a sign-in ends the previous session of the client', async () => {
  const { session } = await signUpSomeone(instance);
  issuer.claims = someone();
  await signInAt(instance, issuer);
  await signInAt(instance, issuer, { sessionToken: session.token });
  expect(await useSession(session.token)).toBe('session_invalid');
});

test('a signed-in client gets no second account, and its session stays', async () => {
  const { session } = await signUpSomeone(instance);
  issuer.claims = someone();
  const before = await state();
  const error = await refusalOf(signInAt(instance, issuer, { sessionToken: session.token }));
  expect(error).toMatchObject({ reason: 'oidc_signed_in_already', kind: 'conflict', code: 'account_exists' });
  expect(await state()).toEqual(before);
});
