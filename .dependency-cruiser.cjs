/** Tests, and what only tests use. */
const TESTS = '([.]test[.]ts$|/src/testing/|^packages/e2e/|^deploy/test/)';

/** Imports point one way: proto <- kit <- audit, deletions <- services <- launcher; inside a service main -> service -> rpc -> use case -> store. */
const rules = [
  { name: 'no-circular', from: {}, to: { circular: true } },
  {
    name: 'no-unlisted-dependency',
    comment: 'The test runner belongs to the whole workspace.',
    from: {},
    to: { dependencyTypes: ['npm-no-pkg', 'npm-unknown', 'unknown'], pathNot: '/node_modules/vitest/' },
  },
  {
    name: 'no-dev-dependency-at-run-time',
    comment: 'npm start installs no development dependencies.',
    from: { pathNot: `(${TESTS}|^bench/|^packages/(testkit|client/scripts|cli/scripts)/|^proto/)` },
    to: { dependencyTypes: ['npm-dev'], dependencyTypesNot: ['type-only'] },
  },
  { name: 'not-unresolvable', from: {}, to: { couldNotResolve: true, pathNot: '^node:' } },
  {
    name: 'kit-knows-no-service',
    from: { path: '^packages/(kit|audit|deletions)/' },
    to: { path: '^(services|packages/launcher)/' },
  },
  {
    name: 'kit-knows-no-domain',
    comment: 'Of the protocol, kit may use what every service shares.',
    from: { path: '^packages/kit/', pathNot: TESTS },
    to: { path: '^(packages/(audit|contract|deletions)/|proto/gen/latchkey/(?!rpc/))' },
  },
  {
    name: 'no-service-imports-another',
    from: { path: '^services/([^/]+)/' },
    to: { path: '^services/', pathNot: '^services/$1/' },
  },
  {
    name: 'services-know-no-launcher',
    from: { path: '^services/', pathNot: TESTS },
    to: { path: '^packages/(launcher|e2e|embedded|testkit)/' },
  },
  {
    name: 'published-packages-stand-alone',
    comment: 'What `latchkey admin` needs of the server is given to it.',
    from: { path: '^packages/(cli|client)/src/', pathNot: TESTS },
    to: { path: '^(services|proto|packages/(?!(cli|client|contract)/))' },
  },
  {
    name: 'contract-stands-alone',
    comment: 'The bundles of the command line and of the dashboard hold it.',
    from: { path: '^packages/contract/src/', pathNot: TESTS },
    to: { pathNot: '^packages/contract/' },
  },
  {
    name: 'embedded-stands-alone',
    from: { path: '^packages/embedded/' },
    to: { path: '^(services|packages/(?!embedded/))' },
  },
  {
    name: 'client-stands-alone',
    comment: 'It is published without dependencies.',
    from: { path: '^packages/client/src/', pathNot: TESTS },
    to: { pathNot: '^packages/client/src/', dependencyTypesNot: ['core'] },
  },
  {
    name: 'test-helpers-in-tests-only',
    from: { pathNot: `(${TESTS}|^packages/testkit/)` },
    to: { path: '(^packages/testkit/|/src/testing/)' },
  },
  {
    name: 'use-case-knows-no-transport',
    comment: 'A use case is <noun>.ts; messages are for <noun>.rpc.ts. What speaks to the object store is no use case.',
    from: {
      path: '^services/(apps|identity|files)/src/(storage/)?[^/]+/[^/.]+[.]ts$',
      pathNot: `(${TESTS}|/object-store/s3-)`,
    },
    to: { path: '(fastify|@connectrpc|bullmq|@aws-sdk|[.]rpc[.]ts$|^services/[^/]+/src/(service|main)[.]ts$)' },
  },
  {
    name: 'hub-knows-no-transport',
    comment: 'What live clients hear, and when, is decided without knowing how it comes in or goes out.',
    from: { path: '^services/realtime/src/(hub|frame)/', pathNot: TESTS },
    to: {
      path: '(fastify|@connectrpc|bullmq|/node_modules/(ws|ioredis)/|^packages/kit/src/(redis|queue|rpc|http)/|^services/realtime/src/((service|main|server)[.]ts$|upgrade/|event/event-subscriber[.]ts$))',
    },
  },
  {
    name: 'store-is-sql-only',
    from: { path: '[.]store[.]ts$' },
    to: { path: '(fastify|@connectrpc|[.]rpc[.]ts$|^services/[^/]+/src/(service|main)[.]ts$)' },
  },
  { name: 'rpc-has-no-sql', from: { path: '[.]rpc[.]ts$' }, to: { path: '[.]store[.]ts$' } },
  { name: 'only-main-runs', from: { path: '^services/' }, to: { path: '^services/[^/]+/src/main[.]ts$' } },
];

module.exports = {
  forbidden: rules.map((rule) => ({ ...rule, severity: 'error' })),
  options: {
    doNotFollow: { path: 'node_modules' },
    exclude: { path: '^packages/[^/]+/dist/' },
    parser: 'swc',
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'node', 'default'],
      extensions: ['.ts', '.js', '.mjs'],
    },
    detectProcessBuiltinModuleCalls: true,
  },
};
