import { spawnSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { ROOT } from './compose/compose-file.ts';

const isIgnored = (path: string) => spawnSync('git', ['-C', ROOT, 'check-ignore', '--no-index', '--quiet', path]).status;

// In a checkout without a repository, git ends with 128.
it.skipIf(isIgnored('.env') !== 0)('.gitignore ignores the secrets of a deployment and nothing else', () => {
  const secrets = ['compose/settings.env', 'compose/identity.env', 'helm/production/secrets.env'];
  const others = ['compose/.env.example', 'helm/example/secrets.env', 'helm/production/values.yaml'];
  expect([...secrets, ...others].map((path) => isIgnored(`deploy/${path}`))).toEqual([0, 0, 0, 1, 1, 1]);
});
