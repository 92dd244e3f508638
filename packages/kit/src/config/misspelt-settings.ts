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
    const meant = [...known].find((setting) => areWithin(setting.length <= 5 ? 1 : 2, name, setting));
    if (meant !== undefined) warn(`${name} is not a setting and has no effect. Did you mean ${meant}?`);
    return meant !== undefined;
  });
}

/** True if the optimal string alignment distance is at most this number of edits. */
function areWithin(edits: number, a: string, b: string): boolean {
  if (a === b) return true;
  if (edits === 0) return false;
  let start = 0;
  while (start < a.length && a[start] === b[start]) start += 1;
  const [restA, restB] = [a.slice(start), b.slice(start)];
  const isWithout = (ofA: number, ofB: number) => areWithin(edits - 1, restA.slice(ofA), restB.slice(ofB));
  const isSwapped = restA[0] === restB[1] && restA[1] === restB[0];
  return isWithout(1, 1) || isWithout(1, 0) || isWithout(0, 1) || (isSwapped && isWithout(2, 2));
}
