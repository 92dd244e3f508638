import { spawnSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { ROOT } from './compose/compose-file.ts';

const isIgnored = (path: string) => spawnSync('git', ['-C', ROOT, 'check-ignore', '--no-index', '--quiet', path]).status;

// In a checkout without a repository, git ends with 128.
it.skipIf(isIgnored('.env') !== 0)('.gitignore ignores the secrets of a deployment and nothing else', () => {
  const secrets = ['deploy/compose/settings.env', 'deploy/compose/identity.env', 'secrets/sealing.env', 'secrets/more/any.txt'];
  const overlay = 'deploy/kubernetes/overlays/';
  expect(secrets.map((path) => isIgnored(path.replace(/^secrets/, `${overlay}production/secrets`)))).toEqual([0, 0, 0, 0]);
  const others = ['deploy/compose/.env.example', `${overlay}example/secrets/sealing.env`, `${overlay}production/settings.env`];
  expect(others.map(isIgnored)).toEqual([1, 1, 1]);
});
