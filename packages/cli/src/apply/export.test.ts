import { expect, it } from 'vitest';
import { formatDeclaration } from './export.ts';
import { parseDeclaration } from './parse-declaration.ts';
import { NEW_SETTINGS, planChanges } from './plan.ts';
import { readFiles } from './read-files.ts';

const SHA256 = 'ab'.repeat(32);

it('an export declares what there is, whatever names look like', async () => {
  const state = [
    {
      id: '019a9e41-0b7d-7a06-9f52-3c8e1d4b7a15',
      name: 'Twin app',
      settings: NEW_SETTINGS,
      levels: ['1.0', 'true', '# x', '~'],
      files: [],
    },
    {
      id: '019a9e41-0b7d-7a06-9f52-3c8e1d4b7a16',
      name: 'Twin app',
      settings: { ...NEW_SETTINGS, version: '1.10' },
      levels: [],
      files: [],
    },
    {
      id: '019a9e41-0b7d-7a06-9f52-3c8e1d4b7a17',
      name: '- {*a}: &b',
      settings: { ...NEW_SETTINGS, status: 'paused', version: '"; \\ \u2028 0x10' },
      levels: ['é', 'a\u009b\u202eb', '\u2066'],
      files: [
        { id: 'one', name: 'null', sha256: SHA256 },
        { id: 'two', name: '0o7', sha256: '1'.repeat(64) },
      ],
    },
  ];
  const text = formatDeclaration(state);
  expect(text).not.toMatch(/[^\P{Cc}\n]|\p{Bidi_Control}/u);
  const { applications } = parseDeclaration(text, 'export');
  expect(planChanges(await readFiles(applications, '/'), state, true)).toEqual({
    changes: [],
    undeclared: { applications: 0, files: 0 },
  });
});
