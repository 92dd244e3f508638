import { settingNames } from './settings.ts';

/** OpenTelemetry's settings of logs resemble those of traces. */
const FOREIGN = /^OTEL_BLRP_/;

/**
 * Warns of environment variables that resemble a setting, and returns them: within two edits of its
 * name, or one for names of up to five letters. A swap of neighbouring letters is one edit.
 */
export function warnOfMisspelt(
  env: NodeJS.ProcessEnv,
  warn: (line: string) => void,
  known: ReadonlySet<string> = settingNames,
): string[] {
  return Object.keys(env).filter((name) => {
    if (known.has(name) || FOREIGN.test(name)) return false;
    const meant = [...known].find((setting) => countEdits(name, setting) <= (setting.length <= 5 ? 1 : 2));
    if (meant !== undefined) warn(`${name} is not a setting and has no effect. Did you mean ${meant}?`);
    return meant !== undefined;
  });
}

/** The optimal string alignment distance; infinite for lengths more than two apart. */
function countEdits(a: string, b: string): number {
  if (Math.abs(a.length - b.length) > 2) return Number.POSITIVE_INFINITY;
  const rows = [Array.from({ length: b.length + 1 }, (_, column) => column)];
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i];
    const edits = (up: number, left: number) => rows[i - up]?.[row.length - left] ?? Number.POSITIVE_INFINITY;
    while (row.length <= b.length) {
      const j = row.length;
      const isSwapped = j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      const replaced = edits(1, 1) + (a[i - 1] === b[j - 1] ? 0 : 1);
      row.push(Math.min(edits(1, 0) + 1, (row.at(-1) ?? 0) + 1, replaced, isSwapped ? edits(2, 2) + 1 : replaced));
    }
    rows.push(row);
  }
  return rows.at(-1)?.at(-1) ?? 0;
}
