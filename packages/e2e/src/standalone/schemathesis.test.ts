import { appendFile, cp } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, inject, it } from 'vitest';
import { createApplication, createKey, type Owner, sharedApi, signUp } from '../client/caller.ts';
import { installPython, WITH_PYTHON } from '../client/python.ts';

/**
 * Schemathesis sends what the OpenAPI document allows and what it forbids, and judges the responses
 * by the document.
 */
const { baseUrl } = sharedApi();
/** The document is the same in both shapes, and a run takes minutes. */
const ONCE = { ...WITH_PYTHON, timeout: 1_200_000, skip: WITH_PYTHON.skip || inject('latchkeyInstance').shape === 'deployed' };

/** Operations that end the session, and a stream that ends with it. */
const SESSION_ENDS = ['signOut', 'signOutEverywhere', 'endSession', 'deleteAccount', 'streamChanges'];

const CREDENTIALS: Record<string, (owner: Owner) => Promise<{ readonly auth: object; readonly excluded: readonly string[] }>> = {
  'a management key': async (owner) => ({ auth: { managementKey: { bearer: (await createKey(owner)).text } }, excluded: [] }),
  'a session': async ({ cookie, csrfToken }) => ({
    auth: { session: { api_key: cookie.replace(/^session=/, '') }, csrf: { api_key: csrfToken } },
    excluded: SESSION_ENDS,
  }),
};

it.each(Object.keys(CREDENTIALS))('Schemathesis finds nothing with %s', ONCE, async (name) => {
  const owner = await signUp();
  await createApplication(owner.session);
  const { auth, excluded } = (await CREDENTIALS[name]?.(owner)) ?? expect.fail();
  const { dir, run } = await installPython('schemathesis==4.32.5');
  await cp(join(import.meta.dirname, 'schemathesis'), dir, { recursive: true });
  const schemes = Object.entries(auth).map(([scheme, value]) => {
    const lines = Object.entries(value as object).map(([key, text]) => `${key} = ${JSON.stringify(text)}\n`);
    return `\n[auth.openapi.${scheme}]\n${lines.join('')}`;
  });
  await appendFile(join(dir, 'schemathesis.toml'), schemes.join(''));
  const exclusions = excluded.flatMap((operationId) => ['--exclude-operation-id', operationId]);
  const found = await run('st', ['run', `${baseUrl}/openapi.json`, '--no-color', ...exclusions], { PYTHONPATH: dir }).then(
    () => '',
    (err: { readonly stdout: string; readonly stderr: string }) => `${err.stdout.slice(0, 50_000)}${err.stderr}`,
  );
  expect(found).toBe('');
  // Otherwise it tested little more than 401.
  expect((await owner.session.get('/api/v1/auth/session')).status).toBe(200);
});
