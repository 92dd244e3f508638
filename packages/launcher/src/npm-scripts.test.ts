import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { programEnv } from '@latchkey/testkit/process/program-env';
import { expect, it } from 'vitest';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const { scripts } = JSON.parse(readFileSync(`${ROOT}package.json`, 'utf8')) as { scripts: Record<string, string> };

/** Runs a script as npm does. */
function run(name: string, args: readonly string[], env: NodeJS.ProcessEnv = {}) {
  const command = [`${ROOT}scripts/run.mjs`, name, ...args];
  const given = { ...programEnv(), HOME: process.env.HOME, npm_lifecycle_event: name, ...env };
  const { status, stdout, stderr } = spawnSync(process.execPath, command, { env: given, encoding: 'utf8', timeout: 60_000 });
  return { status, stdout, stderr };
}

it.each(Object.keys(scripts))(
  'npm run %s prints its help',
  (name) => {
    const { status, stdout, stderr } = run(name, ['--help']);
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(stdout).toMatch(new RegExp(`^Usage: .*npm (run )?${name}`));
  },
  60_000,
);

it.each([
  [
    'check-files',
    [],
    { npm_config_repair: 'true', npm_config_skip_checksums: 'true' },
    'npm run check-files -- --repair --skip-checksums',
  ],
  ['start', [], { npm_config_deployed: 'true' }, 'npm start -- --deployed'],
  ['listen', ['Engine'], { npm_config_from: '3' }, 'npm run listen -- Engine --from=3'],
  ['listen', ['3'], { npm_config_from: 'true' }, 'npm run listen -- … --from=…'],
] as const)('says how to write options of npm run %s that npm took for its own', (name, args, env, command) => {
  const { status, stdout, stderr } = run(name, args, env);
  expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
  expect(stderr).toMatch(/^npm took --[a-z-]+( and --[a-z-]+)? for its own: write `.*`\.\n$/);
  expect(stderr).toContain(`\`${command}\``);
});

/** Hides the loader of glibc from a program, as on a system with another C library. */
const WITHOUT_GLIBC = encodeURIComponent(`
  import fs from 'node:fs';
  import { syncBuiltinESMExports } from 'node:module';
  const { existsSync } = fs;
  fs.existsSync = (path) => !String(path).includes('/ld-linux') && existsSync(path);
  syncBuiltinESMExports();
`);

it.runIf(process.platform === 'linux')('names glibc and the image on a system without it', () => {
  const { status, stdout, stderr } = run('test', ['--help'], { NODE_OPTIONS: `--import=data:text/javascript,${WITHOUT_GLIBC}` });
  expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
  expect(stderr).toMatch(/^Latchkey .* glibc, .* docs\/deployment\.md\.\n$/);
});
