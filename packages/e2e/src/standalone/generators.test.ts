import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import openapiTypescript, { astToString } from 'openapi-typescript';
import { expect, it } from 'vitest';
import { createApplication, createKey, sharedApi, signUp } from '../client/caller.ts';
import { readOpenApiDocument } from '../client/openapi-document.ts';
import { installPython, WITH_PYTHON } from '../client/python.ts';

/** Generators that others wrote, as judges of the document that an instance serves. */
const { baseUrl } = sharedApi();

async function readOperationIds(): Promise<string[]> {
  const { paths } = await readOpenApiDocument(baseUrl);
  return Object.values(paths).flatMap((methods) => Object.values(methods).map(({ operationId }) => operationId));
}

it('openapi-typescript makes types of every operation', async () => {
  const types = astToString(await openapiTypescript(new URL('/openapi.json', baseUrl), { silent: true }));
  const made = [...types.matchAll(/^ {4}(\w+): \{$/gm)].map(([, name]) => name);
  expect(made).toEqual(expect.arrayContaining(await readOperationIds()));
});

/** Media types that the generator has to be told are bytes. */
const CONFIG = `post_hooks: []
content_type_overrides:
  application/offset+octet-stream: application/octet-stream
  application/xml: application/octet-stream
  image/webp: application/octet-stream
`;

const CALL = `
import sys
from out.latchkey_client.client import AuthenticatedClient
from out.latchkey_client.api.applications import list_applications
url, key = sys.argv[1:]
print(list_applications.sync(client=AuthenticatedClient(base_url=url, token=key)).data[0].id)
`;

it('openapi-python-client makes a client of every operation, which calls one', WITH_PYTHON, async () => {
  const { dir, run } = await installPython('openapi-python-client==0.29.1');
  await writeFile(join(dir, 'config.yml'), CONFIG);
  const options = ['--url', `${baseUrl}/openapi.json`, '--config', 'config.yml', '--fail-on-warning', '--output-path', 'out'];
  expect(await run('openapi-python-client', ['generate', ...options])).toBe('Generating out\n');
  const modules = await run('python', ['-c', 'import glob; print(*glob.glob("out/latchkey_client/api/*/*.py"))']);
  const made = modules
    .split(/\s+/)
    .map((path) => path.replace(/^.*\/(.*)\.py$/, '$1').replace(/_(.)/g, (_, letter) => letter.toUpperCase()));
  expect(made).toEqual(expect.arrayContaining(await readOperationIds()));
  const owner = await signUp();
  const [applicationId, key] = [await createApplication(owner.session), await createKey(owner)];
  await writeFile(join(dir, 'call.py'), CALL);
  expect((await run('python', ['call.py', baseUrl, key.text])).trim()).toBe(applicationId);
});
