import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Declaration, DeclaredApplication } from '@latchkey/cli/apply/declaration';
import { executePlan } from '@latchkey/cli/apply/execute';
import { type Plan, planChanges } from '@latchkey/cli/apply/plan';
import { readFiles } from '@latchkey/cli/apply/read-files';
import { type Etags, readState } from '@latchkey/cli/apply/read-state';
import { createRateLimitRetry } from '@latchkey/cli/program/rate-limit-retry';
import { run as runCommand } from '@latchkey/cli/testing/run';
import { Latchkey } from '@latchkey/client';
import { isTestAll } from '@latchkey/testkit/vitest/test-all';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { createKey, type Key, signUp } from '../client/caller.ts';
import { listFiles } from '../client/files.ts';
import { SeededRandom } from '../client/random.ts';
import { type Interruption, startInterruptingProxy } from '../fakes/interrupting-proxy.ts';

const { baseUrl } = inject('latchkeyInstance');

let dir: string;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'latchkey-apply-'));
  await mkdir(join(dir, 'dist'));
});
afterAll(() => rm(dir, { recursive: true }));

describe('the commands', () => {
  it('apply a file, once, and export what it declares', async () => {
    const env = { LATCHKEY_URL: baseUrl, LATCHKEY_KEY: (await createKey(await signUp())).text };
    const run = (args: readonly string[], input?: string) => runCommand(args, env, input);
    const file = join(dir, 'latchkey.yaml');
    const declared = `applications:
  - name: Difference Engine
    settings: { version: "1.4.2", status: paused }
    levels: [basic, pro]
    files: [{ path: dist/engine.zip }]
`;
    await writeFile(file, declared);
    await writeFile(join(dir, 'dist', 'engine.zip'), 'first content');
    const plan =
      '+ Difference Engine   version 1.4.2, status paused, levels basic, pro\n    + engine.zip   13 B from dist/engine.zip\n';
    expect(await run(['apply', '-f', file, '--dry-run'])).toEqual({
      code: 0,
      stdout: `${plan}2 changes. Run without --dry-run to apply them.\n`,
      stderr: '',
    });
    expect(await run(['apply', '-f', file])).toEqual({ code: 2, stdout: plan, stderr: expect.stringContaining('--yes') });
    expect(await run(['apply', '-f', file, '--yes'])).toEqual({
      code: 0,
      stdout: `${plan}2 changes applied.\n`,
      stderr: 'engine.zip: uploaded\nCreated Difference Engine.\n',
    });
    expect(await run(['apply', '-f', file, '--yes'])).toEqual({ code: 0, stdout: 'No changes.\n', stderr: '' });
    const compare = ['apply', '-f', '-', '--dry-run', '--exit-code'];
    expect((await run(compare, 'applications: [{ name: Difference Engine }]\n')).code).toBe(0);
    expect((await run(compare, 'applications: [{ name: Analytical Engine }]\n')).code).toBe(7);

    const exported = await run(['export']);
    expect(exported).toMatchObject({ code: 0, stderr: '' });
    expect(await run(['apply', '-f', '-', '--prune', '--dry-run'], exported.stdout)).toEqual({
      code: 0,
      stdout: 'No changes.\n',
      stderr: '',
    });
    const { code, stdout } = await run(['apply', '-f', '-', '--yes', '--prune', '--json'], 'applications: []\n');
    expect([code, JSON.parse(stdout)]).toMatchObject([
      0,
      { applied: true, changes: [{ action: 'delete', name: 'Difference Engine' }] },
    ]);
    expect(await run(['apply', '-f', '-', '--yes'], 'applications: [{ name: Ada }]\n')).toEqual({
      code: 2,
      stdout: '',
      stderr: expect.stringMatching(/^-:1: applications\[0\]\.name: must be 6 to 32 characters .*\nNothing was changed\. /),
    });
  });
});

describe('interrupted anywhere and run again', () => {
  const INTERRUPTIONS = isTestAll ? 30 : 10;
  const contents = ['first', 'second', 'third'];
  let proxy: Awaited<ReturnType<typeof startInterruptingProxy>>;
  let key: Key;
  beforeAll(async () => {
    proxy = await startInterruptingProxy(baseUrl);
    key = await createKey(await signUp());
    for (const content of contents) await writeFile(join(dir, 'dist', content), content);
  });
  afterAll(() => proxy.stop());

  const etags = new Map<string, Etags>();

  async function plan(client: Latchkey, { applications }: Declaration, prune: boolean): Promise<Plan> {
    const state = await readState(client, { retryRateLimited: createRateLimitRetry(() => {}), etags });
    return planChanges(await readFiles(applications, dir), state, prune);
  }

  const execute = (client: Latchkey, planned: Plan) =>
    executePlan(client, planned, {
      retryRateLimited: createRateLimitRetry(() => {}),
      etags,
      note: () => {},
      startUpload: () => ({ update: () => {}, wait: () => {}, end: () => {} }),
    });

  it.each([
    ['levels', async (client: Latchkey, id: string) => client.levels.set(id, ['other'])],
    ['settings', async (client: Latchkey, id: string) => client.applications.update(id, { version: '3' })],
  ])('does not overwrite %s that were changed since the plan was made', async (name, changeElsewhere) => {
    const { text } = await createKey(await signUp());
    const client = new Latchkey({ url: baseUrl, key: text });
    const { id } = await client.applications.create({ name: 'Difference Engine' });
    const wanted = {
      name: 'Difference Engine',
      ...(name === 'levels' ? { settings: {}, levels: ['basic'] } : { settings: { version: '2' } }),
    };
    const planned = await plan(client, { applications: [wanted] } as Declaration, false);
    await changeElsewhere(client, id);
    await expect(execute(client, planned)).rejects.toMatchObject({ code: 'changed_meanwhile' });
  });

  /** Plans and carries out; answers whether it was interrupted. */
  async function apply(declaration: Declaration, prune: boolean, choose: (plan: Plan) => Interruption | undefined) {
    const client = new Latchkey({ url: proxy.url, key: key.text, retries: 0 });
    proxy.arm(undefined);
    const planned = await plan(client, declaration, prune);
    proxy.arm(choose(planned));
    const execution = execute(client, planned);
    if ((await Promise.allSettled([execution]))[0].status === 'rejected' && !proxy.hasInterrupted()) await execution;
    return proxy.hasInterrupted();
  }

  it(`leads to what is declared, after ${INTERRUPTIONS} interruptions`, async () => {
    let interruptions = 0;
    for (let seed = 1; interruptions < INTERRUPTIONS; seed += 1) {
      expect(seed, 'runs that had nothing to interrupt').toBeLessThan(30);
      const random = new SeededRandom(seed);
      const [declaration, prune] = [randomDeclaration(random, contents), random.oneIn(2)];
      const interrupt = (planned: Plan): Interruption | undefined => {
        const writes = countWrites(planned);
        return writes === 0 ? undefined : { write: 1 + random.below(writes), when: random.pick(['before', 'during', 'after']) };
      };
      // The later ones interrupt what continues.
      for (let tries = 0; tries < 3; tries += 1) interruptions += Number(await apply(declaration, prune, interrupt));
      await apply(declaration, prune, () => undefined);
      expect((await plan(new Latchkey({ url: baseUrl, key: key.text }), declaration, prune)).changes, `seed ${seed}`).toEqual([]);
      await expectDeclared(declaration, prune);
    }
  });

  /** Compares with what the interface answers, without any code of the command. */
  async function expectDeclared({ applications }: Declaration, prune: boolean): Promise<void> {
    const found = (await key.api.get('/api/v1/panel/get-applications')).data as Array<{ id: string; name: string }>;
    const names = found.map(({ name }) => name);
    expect(names.toSorted()).toEqual([...new Set(names)].toSorted());
    if (prune) expect(names.toSorted()).toEqual(applications.map(({ name }) => name).toSorted());
    for (const { name, settings, levels, files = [] } of applications) {
      const applicationId = found.find((application) => application.name === name)?.id ?? '';
      const read = async (path: string) => (await key.api.get(`/api/v1/panel/${path}`, { applicationId })).data;
      expect(await read('get-application-settings')).toMatchObject(settings ?? {});
      expect(await read('get-application-license-levels')).toEqual(levels);
      const stored = (await listFiles(key.api, applicationId)).map(({ displayName, checksum }) => `${displayName} ${checksum}`);
      const wanted = files.map((file) => `${file.name} ${sha256(contentOf(file))}`);
      expect(stored.toSorted()).toEqual(prune ? wanted.toSorted() : expect.arrayContaining(wanted));
    }
  }
});

type File = NonNullable<DeclaredApplication['files']>[number];

const contentOf = (file: File) => ('path' in file ? file.path.replace('dist/', '') : '');
const sha256 = (content: string) => createHash('sha256').update(content).digest('hex');

function randomDeclaration(random: SeededRandom, contents: readonly string[]): Declaration {
  const pickSome = <T>(items: readonly T[]) => items.filter(() => random.oneIn(2));
  const applications = ['First app', 'Second app', 'Third app'].filter(() => !random.oneIn(3));
  return {
    applications: applications.map((name) => ({
      name,
      settings: {
        version: `1.${random.below(3)}`,
        status: random.pick(['online', 'paused'] as const),
        applicationUserRequiresLicense: random.oneIn(2),
      },
      levels: ['basic', ...pickSome(['pro', 'team'])],
      files: pickSome(['a.zip', 'b.zip', 'c.zip']).map((file) => ({ path: `dist/${random.pick(contents)}`, name: file })),
    })),
  };
}

/** The requests that change something. */
function countWrites({ changes }: Plan): number {
  return changes.reduce((sum, { action, settings, levels, files }) => {
    const own = (action === 'change' ? 0 : 1) + settings.length + (levels ? 1 : 0);
    return sum + own + files.length;
  }, 0);
}
