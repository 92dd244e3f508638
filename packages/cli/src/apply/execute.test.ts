import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Latchkey } from '@latchkey/client';
import { expect, it } from 'vitest';
import { createRateLimitRetry } from '../program/rate-limit-retry.ts';
import { replaceFile } from '../upload/replace-file.ts';
import { executePlan } from './execute.ts';
import { planChanges } from './plan.ts';

const PATH = import.meta.filename;
const sha256Of = (content: string | Buffer) => createHash('sha256').update(content).digest('hex');

/** A client whose uploads fail, or store these bytes, and its files: `<id> <name>`. */
function createClient(uploaded: string | Buffer | undefined) {
  const files = new Map([['old', 'a.zip']]);
  const states: string[] = [];
  const record = () => states.push([...files].map((file) => file.join(' ')).join(', '));
  const client = {
    files: {
      upload: async (_application: string, _path: string, { name }: { name: string }) => {
        if (uploaded === undefined) throw new Error('the connection was lost');
        files.set('new', name);
        record();
        return { id: 'new', checksum: sha256Of(uploaded) };
      },
      delete: async (_application: string, id: string) => {
        files.delete(id);
        record();
      },
      rename: async (_application: string, id: string, name: string) => {
        files.set(id, name);
        record();
      },
    },
  };
  return { client: client as unknown as Latchkey, states };
}

const content = readFileSync(PATH);
const source = { path: PATH, declaredPath: 'dist/a.zip', byteSize: content.byteLength };
const old = { id: 'old', name: 'a.zip', sha256: sha256Of('old') };
const settings = {} as never;
const plan = planChanges(
  [{ name: 'Ada', settings: {}, files: [{ name: 'a.zip', sha256: sha256Of(content), source }] }],
  [{ id: 'application', name: 'Ada', settings, levels: [], files: [old] }],
  false,
);

const apply = (client: Latchkey) =>
  executePlan(client, plan, {
    retryRateLimited: createRateLimitRetry(() => {}),
    etags: new Map(),
    onDone: () => {},
    startUpload: () => ({ update: () => {}, wait: () => {}, end: () => {} }),
  });

const former = { id: 'old', displayName: 'a.zip' } as Parameters<typeof replaceFile>[2]['former'];

it.each([
  ['apply', apply],
  ['files upload --replace', (client: Latchkey) => replaceFile(client, 'application', { path: PATH, former, options: {} })],
])('%s: the old file stays until its replacement is stored', async (_command, replace) => {
  const { client, states } = createClient(content);
  await replace(client);
  expect(states).toEqual([
    expect.stringMatching(/^old a\.zip, new (apply|new)-\w+$/),
    expect.stringMatching(/^new /),
    'new a.zip',
  ]);
  const failing = createClient(undefined);
  await expect(replace(failing.client)).rejects.toThrow('the connection was lost');
  expect(failing.states).toEqual([]);
});

it('a file that was changed since the plan does not replace the old one', async () => {
  const { client, states } = createClient('changed');
  await expect(apply(client)).rejects.toThrow('dist/a.zip was changed since the plan was made. Run the command again.');
  expect(states).toEqual([expect.stringMatching(/^old a\.zip, new apply-/), 'old a.zip']);
});
