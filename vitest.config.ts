import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';

const E2E = 'packages/standalone/src/e2e';

/** `npm run test:all` runs every end-to-end test in both shapes; `npm test` leaves out what this file says. */
const all = process.env.LATCHKEY_TESTS === 'all';

/** Minutes of broken processes, networks, disks and object stores. */
const FAULTS = `${E2E}/*.faults.test.ts`;

/** Tests that `npm test` runs on separate processes too, because what they hold crosses a wire there. */
const OVER_THE_WIRE = [
  'avatar',
  'bodies',
  'concurrency',
  'credentials',
  'downloads',
  'file-deletion',
  'first-session',
  'fleet*',
  'http',
  'limits',
  'live-events',
  'metrics',
  'order-of-checks',
  'revocation',
  'sessions',
  'shutdown',
  'traces',
  'upload-faults',
  'upload-races',
  'upload-wire',
  'uploads',
].map((name) => `${E2E}/${name}.test.ts`);

/** The end-to-end tests of one shape; the project's name tells its set-up which one to start. */
const endToEnd = (shape: 'standalone' | 'deployed', include: readonly string[]) => ({
  extends: true as const,
  test: {
    name: `e2e-${shape}`,
    include: all ? [`${E2E}/*.test.ts`] : [...include],
    exclude: all ? [] : [FAULTS],
    // Many start instances: each takes up to 30 seconds on a busy machine, and 60 at most.
    testTimeout: 180_000,
    hookTimeout: 120_000,
    globalSetup: ['./packages/standalone/src/testing/e2e-setup.ts'],
    // What the files share is the instance, in other processes; a process of their own each would only cost time.
    isolate: false,
  },
});

export default defineConfig({
  test: {
    testTimeout: 20_000,
    hookTimeout: 60_000,
    isolate: true,
    pool: 'forks',
    // Most tests wait for servers and processes most of their time. By default two cores would get one worker.
    maxWorkers: Math.max(3, availableParallelism()),
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          include: ['packages/*/src/**/*.test.ts', 'services/*/src/**/*.test.ts', 'deploy/test/**/*.test.ts'],
          exclude: ['**/node_modules/**', `${E2E}/**`],
          globalSetup: ['./packages/testkit/src/global-setup.ts'],
        },
      },
      endToEnd('standalone', [`${E2E}/*.test.ts`]),
      endToEnd('deployed', OVER_THE_WIRE),
    ],
  },
});
