import { expect, it } from 'vitest';
import { findNameProblem, numberName, suggestName } from './file-name.ts';

it('suggests a valid name for every name, with its extension, and leaves valid ones as they are', () => {
  expect(suggestName('\u200bsetup 1.2.exe ')).toBe('setup 1.2.exe');
  expect(suggestName('engine-1.4.2-linux-x64.tar.gz')).toBe('engine-1.tar.gz');
  expect(suggestName('Übersicht.pdf')).toBe('Ubersicht.pdf');
  const hostile = [
    '<img src=x onerror=alert(1)>.png',
    'مرحبا.pdf',
    'W'.repeat(200),
    '....',
    ' ',
    '../../etc/passwd',
    'a..b  c',
    '漢.漢字漢字漢字',
  ];
  for (const name of hostile) expect([name, findNameProblem(suggestName(name))]).toEqual([name, undefined]);
});

it('numbers a name so that it stays valid', () => {
  expect(['setup.exe', 'engine-1.4.2.zip', 'a b c d e f g h', 'a.tar.gz', 'v1'].map((name) => numberName(name, 2))).toEqual([
    ...['setup-2.exe', 'engine-1.4-2.zip', 'a b c d e f g-2', 'a-2.tar.gz', 'v1-2'],
  ]);
});

it('says why a name is not valid', () => {
  expect(findNameProblem('a'.repeat(17))).toBe('17 characters: names have at most 16.');
  for (const name of ['.hidden', 'a.', 'a..b', 'a/b', 'ä', '😀'.repeat(9)])
    expect(findNameProblem(name)).toMatch(/^Letters, digits/);
  expect(findNameProblem(' \u200b ')).toBe('Enter a name.');
});
