import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';

const E2E = 'packages/e2e/src';

/** Set by `npm run test:all`: the folder `standalone` in both shapes, and the faults. */
const all = process.env.LATCHKEY_TESTS === 'all';

/**
 * Unit tests that measure or change what belongs to a whole process: memory, CPU time, telemetry,
 * built-in modules.
 */
const ISOLATED = [
  'packages/kit/src/rpc/observe.test.ts',
  'packages/kit/src/telemetry/tracing.test.ts',
  'packages/launcher/src/log-sink.test.ts',
  'packages/launcher/src/settings.test.ts',
  'services/apps/src/runtime-key/runtime-key.test.ts',
  'services/gateway/src/files-data-path.remote.test.ts',
];

/** With two cores, the default would be one, and tests mostly wait for servers. */
const maxWorkers = Math.max(5, availableParallelism());

/** Unit tests, one project for those that share a process and one for those that do not. */
const unit = (name: string, isolate: boolean) => ({
  extends: true as const,
  test: {
    name,
    include: isolate ? ISOLATED : ['packages/*/src/**/*.test.ts', 'services/*/src/**/*.test.ts', 'deploy/test/**/*.test.ts'],
    exclude: ['**/node_modules/**', `${E2E}/{both,standalone,deployed,faults}/**`, ...(isolate ? [] : ISOLATED)],
    isolate,
    maxWorkers,
    globalSetup: ['./packages/testkit/src/vitest/global-setup.ts'],
  },
});

/**
 * The end-to-end tests of one shape: those of the folder `both`, and its own. The folders `launcher`
 * and `documents` start what they test themselves, so they belong to the unit tests; `client`,
 * `instance` and `fakes` hold helpers.
 */
const endToEnd = (shape: 'standalone' | 'deployed') => ({
  extends: true as const,
  test: {
    name: `e2e-${shape}`,
    include: ['both', shape, ...(all ? ['standalone', 'faults'] : [])].map((folder) => `${E2E}/${folder}/*.test.ts`),
    // Many start instances: each takes up to 30 seconds on a busy machine, and 60 at most.
    testTimeout: 180_000,
    expect: { poll: { timeout: 15_000 } },
    hookTimeout: 120_000,
    globalSetup: ['./packages/e2e/src/instance/e2e-setup.ts'],
    // The files share an instance in other processes, so isolation would only cost time.
    isolate: false,
    maxWorkers,
  },
});

export default defineConfig({
  test: {
    testTimeout: 20_000,
    hookTimeout: 60_000,
    isolate: true,
    pool: 'forks',
    reporters: [
      'default',
      ...(process.env.GITHUB_ACTIONS ? ['github-actions'] : []),
      './packages/testkit/src/vitest/skipped-tests.ts',
    ],
    projects: [unit('unit', false), unit('unit-isolated', true), endToEnd('standalone'), endToEnd('deployed')],
  },
});
