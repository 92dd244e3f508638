import type { Page } from 'playwright-core';
import { beforeAll, describe, expect, it } from 'vitest';
import { button, checkAccessibility, dialog, fillSignIn, heading, useBrowser } from '../client/browser.ts';
import { createApplication, createKey, type Owner, signUp, unique } from '../client/caller.ts';
import { IN_CHROMIUM } from '../client/chromium.ts';
import { setSetting } from '../client/live.ts';
import { signUpGuarded } from '../client/two-factor.ts';

describe('the dashboard in a browser', IN_CHROMIUM, () => {
  const open = useBrowser();
  let owner: Owner;
  beforeAll(async () => {
    owner = await signUp();
  });

  it('signs a new account up, which creates its first application by keyboard alone', async () => {
    const page = await open('/', { statuses: [400] });
    await page.getByRole('link', { name: 'Sign up' }).press('Enter');
    await checkAccessibility(page, { withColors: true });
    const username = unique('user');
    await page.getByLabel('User name').fill(username);
    await page.keyboard.press('Tab');
    await page.keyboard.type(`${username}@example.com`);
    await page.keyboard.press('Tab');
    await page.keyboard.type('too short');
    await page.keyboard.press('Enter');
    await page.getByText('Must be 10 to 128 characters').waitFor();
    expect(await page.locator(':focus').getAttribute('name')).toBe('password');
    await page.keyboard.type(' no more');
    await page.keyboard.press('Enter');
    await heading(page, 'Applications').waitFor();
    await checkAccessibility(page);
    await button(page, /^Find/).press('Enter');
    await page.getByRole('combobox', { name: 'Find' }).fill('api');
    await page.keyboard.press('Enter');
    await page.locator('main:focus', { hasText: 'API keys' }).waitFor();
    await page.keyboard.press('Control+k');
    await page.getByRole('combobox', { name: 'Find' }).waitFor();
    await checkAccessibility(page);
    await page.keyboard.type('create');
    await page.keyboard.press('Enter');
    await page.getByLabel('Name').waitFor();
    await page.keyboard.type('Engine');
    // A second press while the first one is under way changes nothing.
    await page.keyboard.press('Enter');
    await page.keyboard.press('Enter');
    await heading(page, 'Engine').waitFor();
    await page.keyboard.press('g');
    await page.keyboard.press('a');
    await page.getByRole('link', { name: 'Engine' }).press('Enter');
    await heading(page, 'Engine').waitFor();
    expect(await page.title()).toBe('Engine · Latchkey');
    await page.keyboard.press('?');
    await dialog(page).getByText('Go to Applications').waitFor();
    await checkAccessibility(page);
  });

  it('leads back to the page that asked for the sign-in, with a code or a recovery code', async () => {
    const guarded = await signUpGuarded();
    const applicationId = await createApplication(guarded.session, 'Difference Engine');
    for (const code of [guarded.nextCode(), guarded.recoveryCodes[0] ?? '']) {
      const page = await open(`/applications/${applicationId}/levels`, { statuses: [400, 401] });
      await heading(page, 'Sign in').waitFor();
      await fillSignIn(page, { ...guarded, password: 'a wrong password' });
      await page.getByText('The email or the password is wrong.').waitFor();
      await fillSignIn(page, guarded);
      await page.getByLabel('Two-factor code').fill(guarded.wrongCode());
      await page.keyboard.press('Enter');
      await page.getByText('The code is wrong').waitFor();
      await page.getByLabel('Two-factor code').fill(code);
      await page.keyboard.press('Enter');
      await heading(page, 'Difference Engine').waitFor();
      expect(new URL(page.url()).pathname).toBe(`/applications/${applicationId}/levels`);
      await page.context().clearCookies();
    }
  });

  it('asks for the sign-in over the page when the session has ended, and loses no input', async () => {
    const person = await signUp();
    const page = await open('/applications', { owner: person, statuses: [401] });
    await button(page, 'Create application').first().click();
    await page.getByLabel('Name').fill('Analytical Engine');
    const waitForStream = (status: number) =>
      page.waitForResponse((response) => response.url().endsWith('/auth/changes') && response.status() === status, {
        timeout: 15_000,
      });
    const rejected = waitForStream(401);
    await person.session.post('/api/v1/auth/sign-out-everywhere');
    await page.keyboard.press('Enter');
    await page.getByText('Your session has ended').waitFor();
    await rejected;
    await checkAccessibility(page);
    await page.getByLabel('Password').fill(person.password);
    const streaming = waitForStream(200);
    await page.keyboard.press('Enter');
    await page.getByText('Your session has ended').waitFor({ state: 'detached' });
    await streaming;
    expect(await page.getByLabel('Name').inputValue()).toBe('Analytical Engine');
    await dialog(page).getByRole('button', { name: 'Create application' }).click();
    await heading(page, 'Analytical Engine').waitFor();
    await button(page, /^Account of/).press('Enter');
    await page.getByRole('menuitemradio', { name: 'Theme of the system' }).press('End');
    await checkAccessibility(page);
    expect(await page.locator(':focus').textContent()).toBe('Sign out');
    await page.keyboard.press('Enter');
    await heading(page, 'Sign in').waitFor();
    await page.goto('/applications');
    await heading(page, 'Sign in').waitFor();
  });

  it('manages an application: status, version, flags, keys, live events and deletion', async () => {
    const applicationId = await createApplication(owner.session, 'Difference Engine');
    const page = await open(`/applications/${applicationId}`, { owner, statuses: [429] });
    await page.getByText('lk_sock_••').waitFor();
    expect(await page.content()).not.toMatch(/lk_(sock|http)_[0-9A-Za-z]/);
    await button(page, 'Edit version').click();
    await page.getByLabel('Version', { exact: true }).fill('1.4.2');
    await page.keyboard.press('Enter');
    await page.locator('main').getByText('1.4.2').waitFor();
    const flag = page.getByRole('switch', { name: 'License required for users' });
    const changes: unknown[] = [];
    await page.route('**/update-application-settings?*', async (route) => {
      // A second press while the first change is under way.
      if (changes.push(route.request().postDataJSON().value) === 1) await flag.click();
      await route.fallback();
    });
    await flag.click();
    await expect.poll(() => changes).toEqual([true, false]);
    await flag.click();
    await page.getByRole('switch', { name: 'License required for users', checked: true }).waitFor();

    const before = await readSecret(page);
    for (const count of [0, 1]) {
      await button(page, 'Rotate socket key').click();
      await dialog(page).getByText(`Rotations in the last hour: ${count}.`).waitFor();
      await dialog(page).getByRole('button', { name: 'Rotate socket key' }).click();
      await dialog(page).waitFor({ state: 'detached' });
    }
    expect(await readSecret(page)).not.toBe(before);
    await button(page, 'Rotate HTTP key').press('Enter');
    await dialog(page).getByRole('button', { name: 'Rotate HTTP key' }).click();
    await dialog(page)
      .getByText(/You can try again in \d+ min/)
      .waitFor();
    await page.keyboard.press('Escape');

    await page.getByRole('link', { name: 'Live' }).click();
    await page.getByText('Connected', { exact: true }).first().waitFor();
    await button(page, 'Pause').click();
    await dialog(page).getByRole('button', { name: 'Pause application' }).click();
    await page.getByRole('row', { name: /^2 Paused/ }).waitFor();
    await page.locator('button:focus', { hasText: 'Resume' }).waitFor();
    expect(await page.title()).toBe('Live · Difference Engine · Latchkey');
    // Events from before the page was opened.
    await page.getByRole('row', { name: /^1 Version changed 1.0 → 1.4.2/ }).waitFor();
    await setSetting(owner.session, applicationId, 'version', '1.4.3');
    await page.getByRole('row', { name: /^3 Version changed 1.4.2 → 1.4.3/ }).waitFor();
    await button(page, 'Resume').click();
    await page.getByRole('row', { name: /^4 Resumed/ }).waitFor();
    await page.locator('button:focus', { hasText: 'Pause' }).waitFor();

    await page.getByRole('link', { name: 'Overview' }).click();
    await button(page, 'Delete application').press('Enter');
    const confirm = dialog(page).getByRole('button', { name: 'Delete application' });
    expect(await confirm.isDisabled()).toBe(true);
    await dialog(page).getByText('0 files and both keys are deleted.').waitFor();
    await checkAccessibility(page);
    await page.getByLabel(/to confirm$/).fill('Difference Engine');
    await page.keyboard.press('Enter');
    await heading(page, 'Applications').waitFor();
    await page.getByRole('link', { name: 'Difference Engine' }).waitFor({ state: 'detached' });
  });

  it('edits license levels as one change, moved by keyboard and by pointer, which can be undone', async () => {
    const applicationId = await createApplication(owner.session);
    const path = '/api/v1/panel/create-application-license-levels';
    await owner.session.post(path, { levels: ['basic', 'pro'] }, { applicationId });
    const page = await open(`/applications/${applicationId}/levels`, { owner });
    // In one step: a locator of a box that is removed meanwhile would wait for it.
    const names = () =>
      page.getByRole('textbox').evaluateAll((boxes) => boxes.map((box) => (box as { readonly value?: string }).value));
    const read = async () => (await owner.session.get('/api/v1/panel/get-application-license-levels', { applicationId })).data;
    await button(page, 'Add level').click();
    await page.getByLabel('Level 3').fill('pro');
    await page.getByText('Another level has this name.').waitFor();
    expect(await button(page, 'Save levels').isDisabled()).toBe(true);
    await page.getByLabel('Level 3').fill('team');
    await button(page, /^Move team/).press('ArrowUp');
    expect(await names()).toEqual(['basic', 'team', 'pro']);
    const [from, to] = await Promise.all(
      [/^Move pro/, /^Move basic/].map(async (name) => (await button(page, name).boundingBox()) ?? { x: 0, y: 0 }),
    );
    await page.mouse.move((from?.x ?? 0) + 8, (from?.y ?? 0) + 8);
    await page.mouse.down();
    await page.mouse.move((to?.x ?? 0) + 8, (to?.y ?? 0) + 8, { steps: 5 });
    await page.mouse.up();
    expect(await names()).toEqual(['pro', 'basic', 'team']);
    await page.getByRole('link', { name: 'Overview' }).click();
    await dialog(page).getByRole('button', { name: 'Cancel' }).click();
    await button(page, 'Save levels').click();
    await page.getByText('Levels saved').waitFor();
    expect(await read()).toEqual(['pro', 'basic', 'team']);
    await button(page, 'Undo').click();
    await expect.poll(read).toEqual(['basic', 'pro']);
    await expect.poll(names).toEqual(['basic', 'pro']);
  });

  it('shows both versions of a management key to the second of two editors, who chooses', async () => {
    const { id } = await createKey(owner, { name: 'Shared key' });
    const path = `/api/v1/panel/api-keys/${id}`;
    const page = await open(`/api-keys?key=${id}`, { owner, statuses: [412] });
    await page.locator('input[name=name]:focus').fill('My key');
    await owner.session.patch(path, { scopes: ['files:read'] });
    await button(page, 'Save changes').click();
    await page.getByText('The key was changed meanwhile').waitFor();
    await page.getByText('Name: Shared key').waitFor();
    await checkAccessibility(page);
    await button(page, 'Use the saved key').click();
    await page.getByLabel('Name').fill('My key');
    await owner.session.patch(path, { name: 'Their key' });
    await button(page, 'Save changes').click();
    await page.getByText('Name: Their key').waitFor();
    await button(page, 'Replace it with mine').click();
    await page.getByText('API key changed').first().waitFor();
    // The toast is part of it.
    await checkAccessibility(page);
    expect((await owner.session.get(path)).data).toMatchObject({ name: 'My key', scopes: ['files:read'] });
  });

  it('shows both versions to the second of two editors, who chooses', async () => {
    const applicationId = await createApplication(owner.session);
    const path = '/api/v1/panel/create-application-license-levels';
    const saveElsewhere = (...levels: string[]) => owner.session.post(path, { levels }, { applicationId });
    const read = async () => (await owner.session.get('/api/v1/panel/get-application-license-levels', { applicationId })).data;
    await saveElsewhere('basic');
    const page = await open(`/applications/${applicationId}/levels`, { owner, statuses: [412] });
    await page.getByLabel('Level 1').fill('mine');
    await saveElsewhere('theirs');
    await button(page, 'Save levels').click();
    await page.getByText('The levels were changed meanwhile').waitFor();
    await page.getByText('theirs').waitFor();
    await checkAccessibility(page);
    expect(await read()).toEqual(['theirs']);
    await button(page, 'Use the saved levels').click();
    await page.getByLabel('Level 1').fill('mine');
    await saveElsewhere('other');
    await button(page, 'Save levels').click();
    await button(page, 'Replace them with mine').click();
    await page.getByText('Levels saved').waitFor();
    expect(await read()).toEqual(['mine']);
    await saveElsewhere('latest');
    await button(page, 'Undo').click();
    await page.getByText('The levels were not restored').first().waitFor();
    expect(await read()).toEqual(['latest']);

    await page.getByRole('link', { name: 'Overview' }).click();
    await button(page, 'Edit version').click();
    await page.getByLabel('Version', { exact: true }).waitFor();
    await setSetting(owner.session, applicationId, 'version', '2.0');
    await page.getByLabel('Version', { exact: true }).fill('1.5');
    await page.keyboard.press('Enter');
    await page.getByText('It was 1.0 when you began, and is 2.0 now.').waitFor();
    await checkAccessibility(page);
    await button(page, 'Replace 2.0').click();
    await page.getByText('Version changed').first().waitFor();
    await setSetting(owner.session, applicationId, 'version', '2.1');
    // Another setting than this one: nothing is lost.
    await page.getByRole('switch', { name: 'License required for users' }).click();
    await page.getByRole('switch', { name: 'License required for users', checked: true }).waitFor();
    await page.locator('main').getByText('2.1').waitFor();
  });
});

/** The socket key, which the page shows on demand only. */
async function readSecret(page: Page): Promise<string> {
  await button(page, 'Reveal socket key').click();
  const text = await page.getByText(/^lk_sock_[0-9A-Za-z]{32}$/).textContent();
  await button(page, 'Hide socket key').click();
  return text ?? '';
}
