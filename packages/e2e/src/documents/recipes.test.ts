import { execFile } from 'node:child_process';
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { ROOT } from '@latchkey/launcher/program';
import { programEnv } from '@latchkey/testkit/process/program-env';
import { IN_TEST_ALL } from '@latchkey/testkit/vitest/test-all';
import { expect, it, onTestFinished } from 'vitest';

const PROTO = 'proto/schema/latchkey/apps/v1';
const SETTING = 'services/apps/src/setting/setting.ts';

/** Edits by recipe of CONTRIBUTING.md: a file, and the text that is inserted before another. */
const RECIPES: Readonly<Record<string, ReadonlyArray<readonly [path: string, before: string, text: string]>>> = {
  'an error': [
    [
      `${PROTO}/application.proto`,
      '  // The overlap is negative',
      '  // Taken.\n  APPLICATION_ERROR_LABEL_TAKEN = 99 [(latchkey.rpc.v1.error) = {kind: "conflict", message: "Label taken"}];\n',
    ],
    [`${PROTO}/application.proto`, '"setting_unknown", "setting_value_invalid"', '"label_taken", '],
    [SETTING, '    const column =', "    if (value.value === 'taken') throw errors.label_taken();\n"],
  ],
  'a setting of applications': [
    [
      `${PROTO}/application.proto`,
      '  // Status. Always set.\n  ApplicationStatus status = 5',
      '  // Label.\n  string label = 99;\n',
    ],
    ['services/apps/src/db/schema.ts', '  readonly version: string', '  readonly label: string;\n'],
    [SETTING, '  status: {\n    parse', '  label: text(APPLICATION_TEXTS.label.length),\n'],
    [
      'packages/contract/src/setting-definitions.ts',
      "  version: {\n    field: 'version'",
      "  label: { field: 'label', length: VERSION, initial: '', example: 'a', isLive: false, meaning: 'Label.', title: 'Label', hint: 'Label.' },\n",
    ],
    [
      'services/apps/src/db/migrations/20991231-000000-label.ts',
      '',
      "import { type Kysely, sql } from 'kysely';\n\nexport const up = (db: Kysely<unknown>) => sql`alter table application add column label text not null default ''`.execute(db);\n",
    ],
  ],
  'an event for live clients': [
    [
      `${PROTO}/event.proto`,
      '    // Not sent to live',
      '    // Sent.\n    LabelChanged label_changed = 99 [(live) = "Another label."];\n',
    ],
    [
      `${PROTO}/event.proto`,
      '// ApplicationPaused says',
      '// LabelChanged says it.\nmessage LabelChanged {\n  // Label.\n  string label = 1 [(text) = {max_length: 9, example: "a"}];\n}\n\n',
    ],
    [
      SETTING,
      '  await update(',
      "  if (value === 'a') await update({}, { case: 'labelChanged', value: { label: value } }, now);\n",
    ],
  ],
  'a route on an existing RPC': [
    [
      'services/gateway/src/routes/license-levels.ts',
      '  saveLicenseLevels: ',
      "  countLevels: defineRoute('GET /api/v1/panel/count-levels', 'applications:read', {\n      application: 'query', summary: 'Count', data: z.number(), message: 'Counted',\n      failures: ['listLicenseLevels'],\n      handle: async ({ application }) => (await applications.listLicenseLevels(application)).levels.length,\n    }),\n",
    ],
    [
      'packages/client/src/resources/applications.ts',
      '  /** Status, version and',
      "  countLevels: (applicationId: string): Promise<number> => http.call('GET /api/v1/panel/count-levels', { query: { applicationId } }),\n\n",
    ],
  ],
};

const OPTIONS = { ...IN_TEST_ALL, timeout: 600_000 };
const COPIED = ['docs', 'packages', 'proto', 'scripts', 'services', 'README.md', 'package.json', 'tsconfig.json'];
const LOCKED = ['pnpm-lock.yaml', 'pnpm-workspace.yaml', 'node_modules'];
const LEFT_OUT = /\.test\.tsx?$|\/src\/testing$|\/dist$|\/packages\/(?:e2e|testkit)\/src$/;

const run = promisify(execFile);
it.each(Object.entries(RECIPES))('the recipe of %s names the files that a change edits', async (name, edits) => {
  const text = await readFile(join(ROOT, 'CONTRIBUTING.md'), 'utf8');
  const [recipe = ''] = text.split('\n\n').filter((paragraph) => paragraph.startsWith(`**…${name}**`));
  const edited = [...new Set(edits.map(([path]) => path))];
  const [, count, migration] = /\((\d+) files?( and a migration)?\)/.exec(recipe) ?? [];
  expect(edited.filter((path) => !path.includes('/migrations/'))).toHaveLength(Number(count));
  expect(edited.some((path) => path.includes('/migrations/'))).toBe(migration !== undefined);
  const named = [...recipe.matchAll(/`([\w./-]+(?:\.ts|\.proto|\w\/))`/g)].map(([, path = '']) => path);
  expect(named.filter((path) => !edited.some((file) => file.endsWith(path) || `${dirname(file)}/`.endsWith(path)))).toEqual([]);
});

it(
  'after the edits of the recipes, all that is generated has what was added, and every program is well typed',
  OPTIONS,
  async () => {
    const copy = await mkdtemp(join(tmpdir(), 'latchkey-recipes-'));
    onTestFinished(() => rm(copy, { recursive: true, force: true }));
    const options = { recursive: true, verbatimSymlinks: true, filter: (path: string) => !LEFT_OUT.test(path) };
    await Promise.all([
      ...COPIED.map((path) => cp(join(ROOT, path), join(copy, path), options)),
      ...LOCKED.map((path) => symlink(join(ROOT, path), join(copy, path))),
    ]);
    const read = (path: string) => readFile(join(copy, path), 'utf8');
    for (const [path, before, text] of Object.values(RECIPES).flat()) {
      const original = before === '' ? '' : await read(path);
      expect(original, `${path} has ${before}`).toContain(before);
      const edited = original.replace(before, () => text + before);
      await writeFile(join(copy, path), edited);
    }
    const env = { ...programEnv(), HOME: process.env.HOME, DASHBOARD: 'off' };
    const runNode = (...args: string[]) => run(process.execPath, args, { cwd: copy, env, maxBuffer: 16 * 1024 * 1024 });
    await runNode('scripts/run.mjs', 'generate');

    const generated = await read('packages/client/src/generated/openapi.ts');
    for (const added of ['label: string;', '"latchkey.application.label_changed"', '/api/v1/panel/count-levels']) {
      expect(generated).toContain(added);
    }
    expect(await read('docs/cli.md')).toContain('latchkey apps label');
    expect((await runNode('packages/cli/src/main.ts', 'export', '--schema')).stdout).toContain('"Label."');
    const printDocument = `import { readDocument } from './packages/client/scripts/generate.ts'; console.log(JSON.stringify(readDocument()))`;
    expect((await runNode('--input-type=module', '--eval', printDocument)).stdout).toContain('Label taken');

    const include = ['packages/cli', 'packages/client', 'services/apps', 'services/gateway'];
    await writeFile(join(copy, 'tsconfig.recipes.json'), JSON.stringify({ extends: './tsconfig.json', include }));
    for (const project of ['tsconfig.recipes.json', 'packages/dashboard']) {
      const checked = run(join(copy, 'node_modules/.bin/tsc'), ['-p', project, '--pretty', 'false'], { cwd: copy });
      await checked.catch(({ stdout }) => expect(stdout).toBe(''));
    }
  },
);
