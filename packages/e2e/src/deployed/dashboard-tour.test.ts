import { readFile, writeFile } from 'node:fs/promises';
import { IN_TEST_ALL, isTestAll } from '@latchkey/testkit/vitest/test-all';
import type { Page } from 'playwright-core';
import sharp from 'sharp';
import { describe, expect, it } from 'vitest';
import { checkAccessibility, checkWidth, DESK, useBrowser } from '../client/browser.ts';
import { createApplication, createKey, type Owner, sharedApi, signUp } from '../client/caller.ts';
import { IN_CHROMIUM } from '../client/chromium.ts';
import { upload } from '../client/files.ts';
import { setSetting } from '../client/live.ts';

/** Set to write the images of the documents and the structure of their pages. */
const WRITES = process.env.LATCHKEY_SCREENSHOTS === 'write';
const IMAGES = new URL('../../../../docs/images/', import.meta.url);
const STRUCTURE = new URL('structure.yaml', IMAGES);
/** Parts of a page, without days and the texts of rows, which have ids and times. */
const PARTS =
  /^(?!.*, 20\d\d") *- '?(navigation|heading|region|table|columnheader|list|button|link|textbox|searchbox|combobox|switch|meter|img)\b/;

/** Widths of windows: phones, tablets, and those where tables become cards. */
const WIDTHS = [320, 640, 720, 768, 960, 3_840];

const CHROME = 'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/150.0.0.0 Safari/537.36';

/** A page of the documents, and the text that it shows when it is complete. */
interface Stop {
  readonly image: string;
  readonly path: string;
  readonly shows: string;
}

describe('the dashboard as the documents show it', isTestAll || WRITES ? IN_CHROMIUM : IN_TEST_ALL, () => {
  const open = useBrowser();

  it('has the structure of the images, in light and dark, at any width, and suits screen readers', async () => {
    const owner = await signUp(sharedApi().with({ 'user-agent': CHROME }), 'ada_lovelace');
    const application = `/applications/${await fill(owner)}`;
    const stops: readonly Stop[] = [
      { image: 'applications', path: '/applications', shows: 'Analytical Engine' },
      { image: 'application', path: application, shows: 'lk_http_' },
      { image: 'levels', path: `${application}/levels`, shows: 'Add level' },
      { image: 'files', path: `${application}/files`, shows: 'setup-win.exe' },
      { image: 'live', path: `${application}/live`, shows: '1.0 → 1.4.2' },
      { image: 'api-keys', path: '/api-keys', shows: 'Release pipeline' },
      { image: 'audit-log', path: '/audit-log', shows: 'Account created' },
      { image: 'account', path: '/account', shows: 'This session' },
    ];
    const documented = await readFile(STRUCTURE, 'utf8');
    let structure = await visit(
      await open('/sign-in'),
      { image: 'sign-in', path: '/sign-in', shows: 'Forgot password?' },
      documented,
    );
    const page = await open('/applications', { owner });
    for (const stop of stops) structure += await visit(page, stop, documented);
    if (WRITES) await writeFile(STRUCTURE, structure);
    else expect(structure).toBe(documented);
  });
});

/** Checks a page, with its part of the documented structure. Returns its structure. */
async function visit(page: Page, { image, path, shows }: Stop, documented: string): Promise<string> {
  await page.setViewportSize(DESK);
  await page.emulateMedia({ colorScheme: 'light' });
  await page.goto(path);
  await page.getByText(shows).last().waitFor();
  const readStructure = async () => {
    const lines = (await page.locator('main').ariaSnapshot()).split('\n').filter((line) => PARTS.test(line));
    return `${image}:\n${lines.join('\n')}\n`;
  };
  if (WRITES) {
    await page.waitForLoadState('networkidle');
    const png = sharp(await page.screenshot()).png({ palette: true, effort: 10 });
    await writeFile(new URL(`dashboard-${image}.png`, IMAGES), await png.toBuffer());
  } else {
    // Parts of a page load one after the other.
    const part = documented.split(/^(?=[\w-]+:$)/m).find((text) => text.startsWith(`${image}:`));
    const message = 'look at the page, then write the images again: see packages/dashboard/README.md';
    await expect.poll(readStructure, { message }).toBe(part);
  }
  const structure = await readStructure();
  await checkAccessibility(page, { withColors: true });
  for (const width of WIDTHS) {
    await page.setViewportSize({ width, height: 800 });
    await checkWidth(page);
  }
  return structure;
}

/** An account as one has it after some weeks. Returns the id of an application. */
async function fill(owner: Owner): Promise<string> {
  const applicationId = await createApplication(owner.session, 'Difference Engine');
  await createApplication(owner.session, 'Analytical Engine');
  await setSetting(owner.session, applicationId, 'version', '1.4.2');
  const path = '/api/v1/panel/create-application-license-levels';
  await owner.session.post(path, { levels: ['basic', 'pro', 'team'] }, { applicationId });
  for (const name of ['guide.pdf', 'setup-linux.tgz', 'setup-mac.dmg', 'setup-win.exe']) {
    await upload(owner.session, applicationId, name, Buffer.alloc(1_500_000, name));
  }
  await createKey(owner, { name: 'Release pipeline', scopes: ['files:upload', 'files:read'], applicationIds: [applicationId] });
  return applicationId;
}
