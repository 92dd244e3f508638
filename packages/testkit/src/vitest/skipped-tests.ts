import type { Reporter, TestModule, Vitest } from 'vitest/node';

declare module 'vitest' {
  interface TaskMeta {
    /** Program that a test needs, and its installation. */
    needs?: string;
  }
}

/**
 * Prints at the end which tests were skipped, and what they need. With a filter by name it prints
 * nothing, as that skips nearly all.
 */
export default class SkippedTests implements Reporter {
  #isFiltered = false;

  onInit({ config }: Vitest): void {
    this.#isFiltered = config.testNamePattern !== undefined;
  }

  onTestRunEnd(modules: readonly TestModule[]): void {
    if (this.#isFiltered) return;
    const skipped = modules.flatMap(({ children, relativeModuleId }) =>
      [...children.allTests('skipped')].map((test) => {
        const { note } = test.result() as { readonly note?: string | undefined };
        return { file: relativeModuleId, name: test.fullName, needs: test.meta().needs ?? note ?? 'another system or user' };
      }),
    );
    for (const [needs, tests] of Map.groupBy(skipped, (test) => test.needs)) {
      process.stdout.write(`Skipped ${tests.length} ${tests.length === 1 ? 'test' : 'tests'}. Needed: ${needs}\n`);
      for (const line of new Set(tests.map(({ file, name }) => `  ${file} > ${name.split(' > ')[0]}\n`)))
        process.stdout.write(line);
    }
  }
}
