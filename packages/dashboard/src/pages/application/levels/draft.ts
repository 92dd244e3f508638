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

/** Reason why each name can't be saved; undefined if it can. */
export const findProblems = (names: readonly string[]) =>
  names.map((name, index) => {
    if (name === '') return 'Enter a name.';
    if ([...name].length > LICENSE_LEVEL.max) return `At most ${LICENSE_LEVEL.max} characters.`;
    return names.indexOf(name) === index ? undefined : 'Another level has this name.';
  });
