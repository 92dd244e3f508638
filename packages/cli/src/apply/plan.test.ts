import type { Release } from '@latchkey/client';
import { describe, expect, it } from 'vitest';
import { describeCount, describeUndeclared, formatPlan } from './format-plan.ts';
import { planChanges } from './plan.ts';
import type { CurrentApplication, StoredFile, WantedApplication, WantedFile } from './state.ts';

const OLD = 'a'.repeat(64);
const NEW = 'b'.repeat(64);
const NEW_SETTINGS = {
  version: '1.0',
  status: 'online',
  applicationLicenseRequiresClientId: false,
  applicationUserRequiresClientId: false,
  applicationUserRequiresLicense: false,
} as const;

const stored = (name: string, sha256 = OLD): StoredFile => ({ id: `id of ${name}`, name, sha256 });
const local = (name: string, sha256 = NEW): WantedFile => ({
  name,
  sha256,
  source: { path: `/work/dist/${name}`, declaredPath: `dist/${name}`, byteSize: 1_536 },
});
const current = (name: string, others: Partial<CurrentApplication> = {}): CurrentApplication => ({
  id: `id of ${name}`,
  name,
  settings: NEW_SETTINGS,
  levels: [],
  files: [],
  ...others,
});
const wanted = (name: string, others: Partial<WantedApplication> = {}): WantedApplication => ({ name, settings: {}, ...others });
const lines = (declared: WantedApplication[], found: CurrentApplication[], prune = false) =>
  formatPlan(planChanges(declared, found, prune));

it('shows what is created, changed and deleted', () => {
  const declared = [
    wanted('Difference Engine', {
      settings: { version: '1.4.2', status: 'online' },
      files: [local('engine.zip'), local('notes.txt')],
    }),
    wanted('Analytical Engine', { settings: { applicationUserRequiresLicense: true }, levels: ['basic', 'pro'] }),
    wanted('Unchanged', { settings: NEW_SETTINGS, levels: [], files: [local('same.zip', OLD)] }),
    wanted('Only files', { files: [local('engine.zip')] }),
  ];
  const found = [
    current('Difference Engine', {
      settings: { ...NEW_SETTINGS, version: '1.4.1', status: 'paused' },
      files: [stored('engine.zip'), stored('old.zip')],
    }),
    current('Unchanged', { files: [stored('same.zip')] }),
    current('Only files'),
    current('Gone'),
  ];
  const expected = [
    '~ Difference Engine   version 1.4.1 → 1.4.2, status paused → online',
    '    ~ engine.zip   1.5 KiB from dist/engine.zip, replaces other content',
    '    + notes.txt    1.5 KiB from dist/notes.txt',
    '+ Analytical Engine   applicationUserRequiresLicense true, levels basic, pro',
    '  Only files',
    '    + engine.zip   1.5 KiB from dist/engine.zip',
  ];
  expect(lines(declared, found)).toEqual(expected);
  const plan = planChanges(declared, found, false);
  expect(describeCount(plan)).toBe('5 changes');
  expect(describeUndeclared(plan)).toBe(
    'Not declared, and left alone: 1 application and 1 file. --prune deletes what is not declared.',
  );
  const pruned = lines(declared, found, true);
  expect(pruned.filter((line) => !expected.includes(line))).toEqual([
    '    - old.zip',
    '- Gone                with its files and keys',
  ]);
  expect(describeUndeclared(planChanges(declared, found, true))).toBeUndefined();
});

it('publishes the declared version of a channel, and changes its roll-out', () => {
  const release = (version: string, status: string, publishedAt: string | null = null) =>
    ({ id: version, version, channel: 'beta', status, publishedAt, rolloutPercent: 10 }) as Release;
  const found = [
    current('Engine', {
      releases: [
        release('3.0.0', 'draft'),
        release('2.0.0', 'published', '2026-02-02'),
        release('1.5.0', 'yanked', '2026-01-02'),
        release('1.0.0', 'published', '2026-01-01'),
      ],
    }),
  ];
  const plan = (version: string, rolloutPercent?: number) =>
    lines([wanted('Engine', { channels: { beta: { version, rolloutPercent } } })], found);
  expect(plan('3.0.0')).toEqual(['~ Engine   publish 3.0.0 of beta']);
  expect(plan('3.0.0', 5)).toEqual(['~ Engine   publish 3.0.0 of beta to 5 %']);
  expect(plan('2.0.0', 50)).toEqual(['~ Engine   roll out 2.0.0 of beta to 50 %']);
  expect([plan('2.0.0', 10), plan('2.0.0')]).toEqual([[], []]);
  expect(() => plan('1.0.0')).toThrow('Engine: channel beta has published 2.0.0 after 1.0.0. Declare or yank it.');
  expect(() => plan('1.5.0')).toThrow('Engine: 1.5.0 of channel beta was yanked. Declare another version.');
  expect(() => plan('4.0.0')).toThrow('Engine: channel beta has no release 4.0.0.');
});

it('leaves alone what is not declared of an application', () => {
  const found = [current('Difference Engine', { levels: ['basic'], files: [stored('a.zip')] })];
  expect(lines([wanted('Difference Engine')], found, true)).toEqual([]);
});

it('treats another order of levels as a change', () => {
  const found = [current('Difference Engine', { levels: ['basic', 'pro'] })];
  expect(lines([wanted('Difference Engine', { levels: ['pro', 'basic'] })], found)).toEqual([
    '~ Difference Engine   levels basic, pro → pro, basic',
  ]);
});

describe('an application is found', () => {
  const twins = [current('Twin app', { id: 'one' }), current('Twin app', { id: 'two' })];

  it('by its id where its name is not unique', () => {
    const [change, ...others] = planChanges([wanted('Twin app', { id: 'two', levels: ['pro'] })], twins, true).changes;
    expect([change?.id, others.map(({ action, id }) => `${action} ${id}`)]).toEqual(['two', ['delete one']]);
  });

  it('by the name that is left when the other one has an id', () => {
    const declared = [wanted('Twin app', { id: 'one' }), wanted('Twin app', { levels: ['pro'] })];
    expect(planChanges(declared, twins, true).changes.map(({ id }) => id)).toEqual(['two']);
  });

  it.each([
    [wanted('Twin app'), 'Twin app: several applications have this name. Add the id of one: one, two.'],
    [wanted('Twin app', { id: 'three' }), 'Twin app: no application has the id three. Remove the id to create one.'],
    [wanted('Other name', { id: 'one' }), "Other name: the application one is called Twin app, and can't be renamed."],
  ])('or the declaration is rejected: %o', (declared, problem) => {
    expect(() => planChanges([declared], twins, false)).toThrow(problem);
  });
});

it('rejects a file that is neither local nor stored', () => {
  const declared = [wanted('Difference Engine', { files: [{ name: 'a.zip', sha256: NEW }] })];
  const problem = 'Difference Engine: the server has no file a.zip with this sha256. Give a path to upload it.';
  expect(() => planChanges(declared, [current('Difference Engine', { files: [stored('a.zip')] })], false)).toThrow(problem);
  expect(planChanges(declared, [current('Difference Engine', { files: [stored('a.zip', NEW)] })], false).changes).toEqual([]);
});
