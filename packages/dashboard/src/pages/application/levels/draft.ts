import { LICENSE_LEVEL } from '@latchkey/contract/license-level';

export interface Level {
  /** Stays while the level is renamed and moved. */
  readonly key: number;
  readonly name: string;
}

let lastKey = 0;

export const toDraft = (names: readonly string[]): readonly Level[] => names.map(newLevel);

export function newLevel(name: string): Level {
  lastKey += 1;
  return { key: lastKey, name };
}

export const toNames = (levels: readonly Level[]) => levels.map(({ name }) => name.trim());

export function moveLevel(levels: readonly Level[], from: number, to: number): readonly Level[] {
  const moved = levels[from];
  if (!moved || to < 0 || to >= levels.length) return levels;
  const others = levels.toSpliced(from, 1);
  return others.toSpliced(to, 0, moved);
}

/** Reasons why levels can't be saved, by their keys. */
export function findProblems(levels: readonly Level[]): ReadonlyMap<number, string> {
  const names = toNames(levels);
  const problems = levels.map(({ key }, index): [number, string | undefined] => [key, findProblem(names, index)]);
  return new Map(problems.filter((problem): problem is [number, string] => problem[1] !== undefined));
}

function findProblem(names: readonly string[], index: number): string | undefined {
  const name = names[index] ?? '';
  if (name === '') return 'Enter a name.';
  if ([...name].length > LICENSE_LEVEL.max) return `At most ${LICENSE_LEVEL.max} characters.`;
  return names.indexOf(name) === index ? undefined : 'Another level has this name.';
}
