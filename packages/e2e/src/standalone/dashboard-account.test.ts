import { readFile } from 'node:fs/promises';
import sharp from 'sharp';
import { describe, expect, it } from 'vitest';
import { button, checkAccessibility, checkWidth, dialog, fillSignIn, heading, PHONE, useBrowser } from '../client/browser.ts';
import { cookieOf, createApplication, signUp } from '../client/caller.ts';
import { IN_CHROMIUM } from '../client/chromium.ts';
import { upload } from '../client/files.ts';
import { codeAt, signInTo } from '../client/two-factor.ts';
import { waitForMail } from '../fakes/mail.ts';

const IPHONE =
  'Mozilla/5.0 (iPhone; CPU iPhone OS 17_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.0 Mobile Safari/604.1';
const HOSTILE = `<script>alert(1)</script>${'W'.repeat(200)}`;

describe('the account page', IN_CHROMIUM, () => {
  const open = useBrowser();

  it('crops an avatar to a square, and removes it', async () => {
    const page = await open('/account', { owner: await signUp() });
    await page.getByText('This session').waitFor();
    const input = page.getByLabel('Image for the avatar');
    await input.setInputFiles({ name: 'a.png', mimeType: 'image/png', buffer: Buffer.from('no image') });
    await page.getByText('This file is not a readable image').waitFor();
    await page.keyboard.press('Escape');
    await dialog(page).waitFor({ state: 'detached' });
    const buffer = await sharp({ create: { width: 600, height: 200, channels: 3, background: 'red' } })
      .composite([{ input: { create: { width: 200, height: 200, channels: 3, background: 'blue' } }, left: 400, top: 0 }])
      .png()
      .toBuffer();
    await input.setInputFiles({ name: 'wide.png', mimeType: 'image/png', buffer });
    await page.getByLabel('Left and right').press('End');
    await checkAccessibility(page);
    await button(page, 'Save avatar').click();
    const avatar = page.getByAltText('Your avatar');
    await avatar.waitFor();
    const stored = await page.request.get((await avatar.getAttribute('src')) ?? '');
    const { dominant } = await sharp(await stored.body()).stats();
    expect(dominant.b).toBeGreaterThan(200);
    expect((await sharp(await stored.body()).metadata()).width).toBe(256);
    await button(page, 'Remove avatar').click();
    await avatar.waitFor({ state: 'detached' });
  });

  it('sets up two-factor authentication with recovery codes, and turns it off with proof only', async () => {
    const owner = await signUp();
    const page = await open('/account', { owner, statuses: [400] });
    const setUps: string[] = [];
    page.on('request', (request) => request.url().endsWith('/two-factor/set-up') && setUps.push(request.url()));
    await button(page, 'Set up two-factor').click();
    await page.getByRole('img', { name: 'QR code for the authenticator app' }).waitFor();
    await checkAccessibility(page);
    const secret = ((await dialog(page).locator('code').textContent()) ?? '').replaceAll(' ', '');
    await page.getByLabel('Code of the app').fill('000000');
    await page.keyboard.press('Enter');
    await page.getByText('The code is wrong, or was used before').waitFor();
    await page.getByLabel('Code of the app').fill(codeAt(secret, Date.now()));
    await page.keyboard.press('Enter');
    // The codes appear although the dialog is closed before the response.
    await page.keyboard.press('Escape');
    await page.getByText('Store your recovery codes').waitFor();
    await page.keyboard.press('Escape');
    await checkAccessibility(page);
    const codes = await dialog(page).getByRole('listitem').allTextContents();
    const [download] = await Promise.all([page.waitForEvent('download'), button(page, 'Download codes').click()]);
    expect(await readFile(await download.path(), 'utf8')).toContain(codes.join('\n'));
    await button(page, 'I have stored the codes').click();
    await page.locator('button:focus', { hasText: 'Turn off two-factor' }).waitFor();
    await button(page, 'Turn off two-factor').click();
    await page.getByLabel('Password').fill('a wrong password');
    await page.getByLabel('Two-factor code').fill(codes[0] ?? '');
    await page.keyboard.press('Enter');
    await page.getByText('The password is wrong').waitFor();
    await page.getByLabel('Password').fill(owner.password);
    await page.keyboard.press('Enter');
    await page.getByText('Two-factor authentication is off').waitFor();
    await page.locator('button:focus', { hasText: 'Set up two-factor' }).waitFor();
    expect(setUps).toHaveLength(1);
  });

  it('lists sessions with their devices, ends one, and signs out elsewhere', async () => {
    const owner = await signUp();
    for (const userAgent of [IPHONE, HOSTILE, 'curl/8.0']) await signInTo(owner.session.with({ 'user-agent': userAgent }), owner);
    const page = await open('/account', { owner });
    await page.getByText('Safari on iPhone').waitFor();
    await page.getByText('<script>alert(1)</script>').waitFor();
    await page.setViewportSize(PHONE);
    await checkWidth(page);
    await button(page, 'End session: Safari on iPhone').click();
    await button(page, 'End session: Safari on iPhone').waitFor({ state: 'detached' });
    await button(page, 'Sign out elsewhere').click();
    await page.getByText('The 2 other sessions end immediately.').waitFor();
    await dialog(page).getByRole('button', { name: 'Sign out elsewhere' }).click();
    await button(page, 'Sign out elsewhere').waitFor({ state: 'detached' });
    expect((await owner.session.get('/api/v1/auth/sessions')).data).toHaveLength(1);
    await checkWidth(page);
  });

  it('resets a forgotten password, and changes the email, by mailed links', async () => {
    const owner = await signUp();
    const page = await open('/sign-in', { statuses: [401] });
    await page.getByRole('link', { name: 'Forgot password?' }).click();
    await heading(page, 'Reset your password').waitFor();
    await page.getByLabel('Email').fill(owner.email);
    await page.keyboard.press('Enter');
    await page.getByText('Check your mail').waitFor();
    await checkAccessibility(page, { withColors: true });
    await page.goto(`/reset-password#token=${(await waitForMail(owner.email)).token}`);
    await page.getByLabel('New password').waitFor();
    await page.reload();
    const isSignIn = Promise.withResolvers<void>();
    await page.route(/toast-region.*js/, (route) => isSignIn.promise.then(() => route.continue()));
    const isAsked = Promise.withResolvers<void>();
    await page.route('**/assets/*.js', (route) => isAsked.promise.then(() => route.fallback()));
    await page.getByLabel('New password').fill('another passphrase');
    await page.keyboard.press('Enter');
    // The form stays until the next page is loaded: another one would look like a failure.
    await page.waitForURL('**/sign-in');
    expect(await page.getByLabel('New password').isVisible()).toBe(true);
    isAsked.resolve();
    await heading(page, 'Sign in').waitFor();
    isSignIn.resolve();
    await page.getByText('Sign in with the new password.').waitFor();

    const signedIn = await signInTo(owner.session, { ...owner, password: 'another passphrase' });
    const session = owner.session.with({ cookie: cookieOf(signedIn.headers), 'x-csrf-token': signedIn.data.csrfToken });
    const email = `new-${owner.email}`;
    await session.post('/api/v1/auth/email/change', { email, password: 'another passphrase' });
    await page.goto(`/confirm-email#token=${(await waitForMail(email)).token}`);
    await button(page, 'Confirm email').click();
    await fillSignIn(page, { ...owner, password: 'another passphrase' });
    await page.waitForURL('**/account');
    expect((await session.get('/api/v1/auth/session')).data.account.email).toBe(email);
  });

  it('downloads a file, and deletes the account with all that it owns', async () => {
    const owner = await signUp();
    const applicationId = await createApplication(owner.session);
    await upload(owner.session, applicationId, 'readme.txt', 'Hello, Latchkey!');
    const page = await open(`/applications/${applicationId}/files`, { owner, statuses: [400, 401] });
    const [download] = await Promise.all([page.waitForEvent('download'), button(page, 'Download readme.txt').click()]);
    expect(download.suggestedFilename()).toBe('readme.txt');
    expect(await readFile(await download.path(), 'utf8')).toBe('Hello, Latchkey!');
    await page.goto('/account');
    await button(page, 'Delete account').click();
    const confirm = dialog(page).getByRole('button', { name: 'Delete account' });
    expect(await confirm.isDisabled()).toBe(true);
    await dialog(page).getByText('1 application, 1 file, 0 API keys').waitFor();
    await page.getByLabel(/to confirm$/).fill(owner.username);
    await page.getByLabel('Password').fill('a wrong password');
    await confirm.click();
    await page.getByText('The password is wrong').waitFor();
    await checkAccessibility(page);
    await page.getByLabel('Password').fill(owner.password);
    await confirm.click();
    await heading(page, 'Sign in').waitFor();
    expect((await owner.session.get('/api/v1/auth/session')).status).toBe(401);
  });
});
