import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Latchkey } from '@latchkey/client';
import { expect, it } from 'vitest';
import { createRateLimitRetry } from '../program/rate-limit-retry.ts';
import { executePlan } from './execute.ts';
import { type Plan, planChanges } from './plan.ts';
import type { StoredFile } from './state.ts';

const PATH = import.meta.filename;
const sha256Of = (content: string | Buffer) => createHash('sha256').update(content).digest('hex');

/** A client that stores these bytes, and its calls. */
function createClient(uploaded: string | Buffer) {
  const calls: string[] = [];
  const client = {
    files: {
      async upload(_application: string, _path: string, { name, replace }: { name: string; replace: boolean }) {
        calls.push(`${replace ? 'replace' : 'create'} ${name}`);
        return { id: 'new', checksum: sha256Of(uploaded) };
      },
      delete: async (_application: string, id: string) => void calls.push(`delete ${id}`),
    },
  };
  return { client: client as unknown as Latchkey, calls };
}

const content = readFileSync(PATH);
const source = { path: PATH, declaredPath: 'dist/a.zip', byteSize: content.byteLength };
const old = { id: 'old', name: 'a.zip', sha256: sha256Of('old') };
const settings = {} as never;
const plan = (sha256: string, ...files: StoredFile[]) =>
  planChanges(
    [{ name: 'Ada', settings: {}, files: [{ name: 'a.zip', sha256, source }] }],
    [{ id: 'application', name: 'Ada', settings, levels: [], files }],
    false,
  );

const apply = (client: Latchkey, planned: Plan) =>
  executePlan(client, planned, {
    retryRateLimited: createRateLimitRetry(() => {}),
    etags: new Map(),
    note: () => {},
    startUpload: () => ({ update: () => {}, wait: () => {}, end: () => {} }),
  });

it('a file is replaced by one call', async () => {
  const { client, calls } = createClient(content);
  await apply(client, plan(sha256Of(content), old));
  expect(calls).toEqual(['replace a.zip']);
});

it('a file that was changed since the plan replaces nothing, and is not left as a new one', async () => {
  const problem = 'dist/a.zip was changed since the plan was made. Run the command again.';
  const { client, calls } = createClient(content);
  await expect(apply(client, plan(sha256Of('planned'), old))).rejects.toThrow(problem);
  expect(calls).toEqual([]);
  await expect(apply(client, plan(sha256Of('planned')))).rejects.toThrow(problem);
  expect(calls).toEqual(['create a.zip', 'delete new']);
});
