import { expect, it } from 'vitest';
import { parseDeclaration } from './parse-declaration.ts';

const problemsOf = (text: string): string[] => {
  try {
    parseDeclaration(text, 'latchkey.yaml');
    return [];
  } catch (err) {
    return (err as Error).message.split('\n');
  }
};

it('reads applications with settings, levels and files', () => {
  const text = `applications:
  - name: Difference Engine
    settings: { version: "1.10", status: paused }
    levels: [basic, pro]
    files:
      - path: dist/engine.zip
      - path: dist/engine-1.10-linux.zip
        name: linux.zip
`;
  expect(problemsOf(text)).toEqual([]);
});

it('names line, path and rule of each problem', () => {
  const text = `applications:
  - name: Ada
    settings:
      version: 1.10
      satus: paused
    levels: [basic, pro, basic]
    files:
      - path: dist/a-name-that-is-too-long.zip
      - path: a.zip
      - { name: a.zip, sha256: ${'a'.repeat(64)} }
      - { name: b.zip }
`;
  expect(problemsOf(text)).toEqual([
    'latchkey.yaml:2: applications[0].name: must be 6 to 32 characters without white space around',
    'latchkey.yaml:4: applications[0].settings.version: must be text: put it in quotes',
    'latchkey.yaml:5: applications[0].settings: unknown key: satus',
    'latchkey.yaml:6: applications[0].levels[2]: is a level twice',
    expect.stringMatching(/^latchkey\.yaml:8: applications\[0\]\.files\[0\]\.path: ends in a name that the server rejects/),
    'latchkey.yaml:11: applications[0].files[3]: must have a path to upload, or the name and sha256 of a stored file',
  ]);
});

it.each([
  ['', ['latchkey.yaml:1: the document: must begin with "applications:"']],
  [
    'applications:\n  - name: Difference Engine\n  - name: Difference Engine\n',
    ['latchkey.yaml:3: applications[1]: is declared twice: give each application its id'],
  ],
  [
    `applications:\n  - name: Difference Engine\n    levels: [${Array.from({ length: 1_001 }, (_, index) => `l${index}`)}]\n`,
    ['latchkey.yaml:3: applications[0].levels: must be 1 to 1000 levels'],
  ],
  ['{}', ['latchkey.yaml:1: applications: is missing']],
  ['applications: [{}]', ['latchkey.yaml:1: applications[0].name: is missing']],
  [
    'applications: [{ name: Difference Engine, settings: { status: on, applicationUserRequiresLicense: yes }, files: 1 }]',
    [
      'latchkey.yaml:1: applications[0].settings.status: must be online or paused',
      'latchkey.yaml:1: applications[0].settings.applicationUserRequiresLicense: must be true or false',
      'latchkey.yaml:1: applications[0].files: must be a list',
    ],
  ],
  ['applications: [', [expect.stringMatching(/^latchkey\.yaml:1: /)]],
  ['applications: []\napplications: []\n', ['latchkey.yaml:2: Map keys must be unique']],
  ['applications: !!set { a }\n', ['latchkey.yaml:1: applications: must be a list']],
])('rejects %j', (text, problems) => {
  expect(problemsOf(text)).toEqual(problems);
});

it.each([
  ['sequences in brackets', '['.repeat(100_000), 1],
  ['maps in braces', `applications:\n  ${'{ a: '.repeat(10_000)}`, 2],
  ['sequences on one line', '- '.repeat(100_000), 1],
  ['keys', '? '.repeat(100_000), 1],
  ['indented maps', Array.from({ length: 1_000 }, (_, depth) => `${' '.repeat(depth)}a:`).join('\n'), 20],
])('rejects deep %s before it reads them', (_name, text, line) => {
  expect(problemsOf(text)).toEqual([`latchkey.yaml:${line}: nested more than 20 levels deep`]);
});

it('rejects a document whose aliases would expand without bound', () => {
  const lines = ['a: &a [x, x, x, x, x, x, x, x, x]'];
  for (let i = 1; i < 9; i += 1) lines.push(`${'abcdefghi'[i]}: &${'abcdefghi'[i]} [${`*${'abcdefghi'[i - 1]}, `.repeat(9)}]`);
  expect(problemsOf(lines.join('\n'))).toEqual([expect.stringMatching(/^latchkey\.yaml: Excessive alias count/)]);
});

it.each(['length: { toString: 1 }', 'length: { valueOf: 1 }', 'length: -1, size: 1'])(
  'rejects the map { %s } everywhere',
  (properties) => {
    const evil = `{ ${properties} }`;
    const application = (text: string) => `applications:\n  - name: Difference Engine\n    ${text}\n`;
    for (const text of [
      evil,
      `applications: ${evil}`,
      `applications: [${evil}]`,
      `applications:\n  - name: ${evil}`,
      ...['id', 'settings', 'levels', 'files'].map((name) => application(`${name}: ${evil}`)),
      ...['version', 'status', 'applicationUserRequiresLicense'].map((name) => application(`settings: { ${name}: ${evil} }`)),
      ...['levels', 'files'].map((name) => application(`${name}: [${evil}]`)),
      ...['path', 'name', 'sha256'].map((name) => application(`files: [{ ${name}: ${evil} }]`)),
      application(`files: [{ path: a, name: ${evil} }]`),
      application(`files: [{ name: a, sha256: ${evil} }]`),
    ])
      expect(problemsOf(text), text).toEqual(expect.arrayContaining([expect.stringMatching(/^latchkey\.yaml:\d+: /)]));
  },
);
