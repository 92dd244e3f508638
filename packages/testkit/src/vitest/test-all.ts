/** True in `npm run test:all`. */
export const isTestAll = process.env.LATCHKEY_TESTS === 'all';

/** Options of tests that run in `npm run test:all` alone. */
export const IN_TEST_ALL = { skip: !isTestAll, ...(!isTestAll && { meta: { needs: 'npm run test:all' } }) };
