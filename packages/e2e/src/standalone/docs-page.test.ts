import { describe, expect, it } from 'vitest';
import { checkAccessibility, useBrowser } from '../client/browser.ts';
import { IN_CHROMIUM } from '../client/chromium.ts';

describe('the page of the OpenAPI document', IN_CHROMIUM, () => {
  const open = useBrowser();

  it('is accessible with an operation open, to which its address leads', async () => {
    const page = await open('/docs/');
    await page.getByText('/api/v1/panel/update-application-settings').click();
    await page.getByText('Request body').first().waitFor();
    expect(page.url()).toContain('/updateApplicationSettings');
    await checkAccessibility(page);
  });
});
