import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['packages/*/src/**/*.test.ts', 'services/*/src/**/*.test.ts', 'bench/**/*.test.ts'],
    globalSetup: ['./packages/testkit/src/global-setup.ts'],
    testTimeout: 20_000,
    hookTimeout: 60_000,
    isolate: true,
    pool: 'forks',
  },
});
