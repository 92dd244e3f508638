import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';

const E2E = 'packages/standalone/src/e2e';

/** Set by `npm run test:all`: every end-to-end test in both shapes. */
const all = process.env.LATCHKEY_TESTS === 'all';

/** Minutes of broken processes, networks, disks and object stores. */
const FAULTS = `${E2E}/*.faults.test.ts`;

/** Every page once. The other tests of the dashboard are standalone. */
const TOUR = `${E2E}/dashboard-tour.test.ts`;

/** Tests that start all their processes themselves: in the deployed shape alone. */
const DEPLOYED = ['faults', 'fleet', 'fleet-start', 'traces'].map((name) => `${E2E}/${name}.test.ts`);

/** Tests that `npm test` also runs in the deployed shape, as they depend on the network. */
const OVER_THE_WIRE = [
  'command-line',
  'connections',
  'delete-account',
  'credential-changes',
  'downloads',
  'first-session',
  'live-events',
  'order-of-checks',
  'request-costs',
].map((name) => `${E2E}/${name}.test.ts`);

/**
 * Unit tests that measure or change what belongs to a whole process: memory, CPU time, telemetry,
 * built-in modules.
 */
const ISOLATED = [
  'packages/kit/src/rpc/observe.test.ts',
  'packages/kit/src/telemetry/tracing.test.ts',
  'packages/standalone/src/log-sink.test.ts',
  'packages/standalone/src/settings.test.ts',
  'services/apps/src/runtime-key/runtime-key.test.ts',
  'services/gateway/src/files-data-path.remote.test.ts',
];

/** Unit tests, one project for those that share a process and one for those that do not. */
const unit = (name: string, isolate: boolean) => ({
  extends: true as const,
  test: {
    name,
    include: isolate ? ISOLATED : ['packages/*/src/**/*.test.ts', 'services/*/src/**/*.test.ts', 'deploy/test/**/*.test.ts'],
    exclude: ['**/node_modules/**', `${E2E}/**`, ...(isolate ? [] : ISOLATED)],
    isolate,
    // With two cores, the default would be one, and tests mostly wait for servers.
    maxWorkers: Math.max(3, availableParallelism()),
    sequence: { groupOrder: 0 },
    globalSetup: ['./packages/testkit/src/global-setup.ts'],
  },
});

/** The end-to-end tests of one shape; the set-up starts the one that the project's name says. */
const endToEnd = (shape: 'standalone' | 'deployed', include: readonly string[], exclude: readonly string[] = []) => ({
  extends: true as const,
  test: {
    name: `e2e-${shape}`,
    include: all ? [`${E2E}/*.test.ts`] : [...include],
    exclude: [...exclude, ...(all ? [] : [FAULTS])],
    // Many start instances: each takes up to 30 seconds on a busy machine, and 60 at most.
    testTimeout: 180_000,
    expect: { poll: { timeout: 15_000 } },
    hookTimeout: 120_000,
    globalSetup: ['./packages/standalone/src/testing/e2e-setup.ts'],
    // The files share an instance in other processes, so isolation would only cost time.
    isolate: false,
    // After the unit tests and fewer at a time, as each file may run ten processes.
    maxWorkers: Math.max(2, Math.floor(availableParallelism() / 2)),
    sequence: { groupOrder: 1 },
  },
});

export default defineConfig({
  test: {
    testTimeout: 20_000,
    hookTimeout: 60_000,
    isolate: true,
    pool: 'forks',
    projects: [
      unit('unit', false),
      unit('unit-isolated', true),
      endToEnd('standalone', [`${E2E}/*.test.ts`], all ? DEPLOYED : [...DEPLOYED, TOUR]),
      endToEnd('deployed', [...DEPLOYED, ...OVER_THE_WIRE, TOUR]),
    ],
  },
});
