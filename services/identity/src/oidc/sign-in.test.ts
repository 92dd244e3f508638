import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { outcomeOf, refusalOf } from '../testing/identity.fixture.ts';
import { comeBack, finishAt, openTestOidc, signInAt, someone, stateOf } from '../testing/oidc-flow.fixture.ts';
import { present, sessionCredential, signUpSomeone } from '../testing/sample.fixture.ts';

const { identity, instance, issuer } = await openTestOidc();

const state = () => stateOf(identity);

test('whoever is unknown gets an account by what the issuer says, and from then on signs in to it', async () => {
  const claims = someone({ picture: 'https://images.test/ada.png' });
  issuer.claims = claims;
  const first = await signInAt(instance, issuer);
  expect(first.account).toMatchObject({
    username: claims.preferred_username,
    email: claims.email,
    pictureUrl: 'https://images.test/ada.png',
    twoFactorEnabled: false,
  });
  issuer.claims = { sub: claims.sub };
  const second = await signInAt(instance, issuer);
  expect(second.account).toEqual(first.account);
  expect(second.session?.token).not.toBe(first.session?.token);
  const { principal } = await instance.authentication.authenticate({
    credential: sessionCredential(present(second.session).token),
  });
  expect(principal?.accountId).toBe(first.account?.id);
});

test('an issuer that says little in its token is asked at its UserInfo endpoint', async () => {
  const picture = 'https://images.test/b.png';
  const { sub, ...rest } = someone();
  issuer.claims = { sub };
  issuer.userInfo = { ...rest, picture };
  // What was discovered before knows of no such endpoint.
  const fresh = await identity.connect({ env: issuer.env() });
  const { account } = await signInAt(fresh, issuer);
  expect(account).toMatchObject({ username: rest.preferred_username, email: rest.email, pictureUrl: picture });
  issuer.answers['/userinfo'] = (_req, res) => void res.writeHead(200, { 'content-type': 'application/json' }).end('{"sub":"x"}');
  expect(await outcomeOf(finishAt(fresh, issuer))).toBe('oidc_refused');
});

test('an account with the same email is neither signed in to nor linked, whatever the case', async () => {
  const { account } = await signUpSomeone(instance);
  const before = await state();
  issuer.claims = someone({ email: account.email.toUpperCase() });
  const refusal = await refusalOf(finishAt(instance, issuer));
  expect(refusal).toMatchObject({ reason: 'oidc_email_taken', kind: 'conflict', code: 'account_exists' });
  expect(await state()).toEqual(before);
});

test.each([
  ['no email', { email: undefined }],
  ['an email of which it says nothing', { email_verified: undefined }],
  ['an email that it has not verified', { email_verified: false }],
  ['an email that it says odd things of', { email_verified: 1 }],
  ['what is no email', { email: 'nobody' }],
  ['an email with a NUL', { email: 'a\0@example.test' }],
])('makes no account of whoever has %s', async (_what, change) => {
  const before = await state();
  issuer.claims = someone(change);
  const refusal = await refusalOf(finishAt(instance, issuer));
  expect(refusal).toMatchObject({ reason: 'oidc_email_unverified', kind: 'forbidden', code: 'email_not_verified' });
  expect(await state()).toEqual(before);
});

test('with sign-up closed, whoever is unknown is refused, and whoever is known signs in', async () => {
  const known = someone();
  issuer.claims = known;
  await signInAt(instance, issuer);
  const closed = await identity.connect({ env: { ...issuer.env(), SIGN_UP: 'closed' } });
  expect(await outcomeOf(signInAt(closed, issuer))).toBe('done');
  const before = await state();
  issuer.claims = someone();
  expect(await refusalOf(finishAt(closed, issuer))).toMatchObject({ reason: 'sign_up_closed', code: 'sign_up_closed' });
  expect(await state()).toEqual(before);
});

test.each([
  [{ preferred_username: 'Zoë Müller' }, 'Zoe-Muller'],
  [{ preferred_username: 'grace.hopper@navy.test' }, 'grace-hopper'],
  [{ preferred_username: '李', name: 'Li Wei' }, 'Li-Wei'],
  [{ preferred_username: 'x', nickname: '  ', name: '--' }, 'mail'],
  [{ preferred_username: 42, name: { first: 'a' } }, 'mail'],
  [{ preferred_username: `${'n'.repeat(31)}-${'m'.repeat(9)}` }, 'n'.repeat(31)],
  [{ preferred_username: 'a\u0007b\u202ec' }, 'a-b-c'],
])('of %j makes a username by the rules: %s', async (names, expected) => {
  issuer.claims = { sub: randomUUID(), email: `mail@${randomUUID()}.test`, email_verified: true, ...names };
  const { account } = await signInAt(instance, issuer);
  // Of those who come after the first, the name has a suffix.
  expect(present(account).username).toMatch(new RegExp(`^${expected}(-[a-z2-9]{6})?$`));
});

test('a username that is taken in any case gets a suffix, and stays within its length', async () => {
  const name = `N${randomUUID().replaceAll('-', '').slice(0, 31)}`;
  const usernames = [];
  for (const preferred_username of [name, name.toLowerCase(), name]) {
    issuer.claims = someone({ preferred_username });
    usernames.push(present((await signInAt(instance, issuer)).account).username);
  }
  expect(usernames[0]).toBe(name);
  for (const username of usernames.slice(1)) expect(username).toMatch(/^n[0-9a-f]{24}-[a-z2-9]{6}$/i);
  expect(new Set(usernames).size).toBe(3);
});

test('of first sign-ins of one person at once, all end in one account', async () => {
  issuer.claims = someone();
  const backs = await Promise.all(Array.from({ length: 8 }, () => comeBack(instance, issuer)));
  const ends = await Promise.all(backs.map((back) => instance.oidc.finishOidc(back)));
  const accounts = ends.map(({ outcome }) => outcome.case === 'signedIn' && outcome.value.account?.id);
  expect(new Set(accounts).size).toBe(1);
  expect(accounts[0]).toMatch(/^[0-9a-f-]{36}$/);
});

test.each([
  ['http', 'http://images.test/a.png'],
  ['a script', 'javascript:alert(1)'],
  ['data', 'data:image/png;base64,AAAA'],
  ['no URL', 'a.png'],
  ['2,049 characters', `https://images.test/${'a'.repeat(2_029)}`],
  ['more than that once it is written out', `https://images.test/${'ä'.repeat(500)}`],
  ['a password', 'https://u:p@images.test/a.png'],
  ['a number', 7],
])('ignores a picture of %s and keeps the one it has', async (_what, picture) => {
  const claims = someone({ picture: 'https://images.test/kept.png' });
  issuer.claims = claims;
  await signInAt(instance, issuer);
  issuer.claims = { ...claims, picture };
  expect((await signInAt(instance, issuer)).account?.pictureUrl).toBe('https://images.test/kept.png');
});

test('a sign-in ends the session that the client had, whosesoever', async () => {
  const { session } = await signUpSomeone(instance);
  issuer.claims = someone();
  await signInAt(instance, issuer);
  const { account } = await signInAt(instance, issuer, { sessionToken: present(session).token });
  const old = instance.authentication.authenticate({ credential: sessionCredential(session.token) });
  expect(await outcomeOf(old)).toBe('session_invalid');
  const again = await signInAt(instance, issuer);
  const third = await signInAt(instance, issuer, { sessionToken: present(again.session).token });
  expect(third.account?.id).toBe(account?.id);
  const ended = instance.authentication.authenticate({ credential: sessionCredential(present(again.session).token) });
  expect(await outcomeOf(ended)).toBe('session_invalid');
});

test('whoever is signed in gets no second account, and keeps the session', async () => {
  const { session } = await signUpSomeone(instance);
  issuer.claims = someone();
  const before = await state();
  const refusal = await refusalOf(signInAt(instance, issuer, { sessionToken: session.token }));
  expect(refusal).toMatchObject({ reason: 'oidc_signed_in_already', kind: 'conflict', code: 'account_exists' });
  expect(await state()).toEqual(before);
  expect(await outcomeOf(signInAt(instance, issuer, { sessionToken: 'nonsense' }))).toBe('done');
});
