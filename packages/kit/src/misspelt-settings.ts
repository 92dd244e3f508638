import { settingNames } from './config.ts';

/** Names this short have too many neighbours: `PGHOST` is no misspelt `HOST`. */
const SHORT_NAME_LENGTH = 5;
/** OpenTelemetry has settings of other signals that look like those of traces. */
const OTHERS = /^OTEL_BLRP_/;

/**
 * Warns of variables that are nearly settings: within two edits of one that this process has read, or within one of a name of
 * up to five letters. Two neighbouring letters that are swapped are one edit.
 *
 * @returns their names
 */
export function warnOfMisspelt(
  env: NodeJS.ProcessEnv,
  warn: (line: string) => void,
  known: ReadonlySet<string> = settingNames,
): string[] {
  const unknown = Object.keys(env).filter((name) => !known.has(name) && !OTHERS.test(name));
  return unknown.filter((name) => {
    const meant = [...known].find((setting) => isNear(name, setting));
    if (meant !== undefined) warn(`${name} is not a setting and has no effect. Did you mean ${meant}?`);
    return meant !== undefined;
  });
}

function isNear(name: string, setting: string): boolean {
  const editsMax = setting.length <= SHORT_NAME_LENGTH ? 1 : 2;
  return Math.abs(name.length - setting.length) <= editsMax && countEdits(name, setting) <= editsMax;
}

/** The optimal string alignment distance. */
function countEdits(a: string, b: string): number {
  let [before, row] = [[] as number[], Array.from({ length: b.length + 1 }, (_, column) => column)];
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const isSame = a[i - 1] === b[j - 1];
      const isSwapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      const edits = Math.min((next[j - 1] ?? 0) + 1, (row[j] ?? 0) + 1, (row[j - 1] ?? 0) + (isSame ? 0 : 1));
      next.push(isSwapped ? Math.min(edits, (before[j - 2] ?? 0) + 1) : edits);
    }
    [before, row] = [row, next];
  }
  return row[b.length] ?? 0;
}
