import { parseArgs } from 'node:util';
import type { CheckOptions } from './check-files.ts';

/** What the command line asks for. */
export type CheckArguments = { readonly help: true } | ({ readonly help: false } & CheckOptions);

/**
 * @returns what is asked for
 * @throws {Error} with a sentence about an argument that there is none such
 */
export function readCheckArguments(args: readonly string[]): CheckArguments {
  const { values } = parseArgs({
    args: [...args],
    options: {
      mend: { type: 'boolean', default: false },
      'skip-checksums': { type: 'boolean', default: false },
      force: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) return { help: true };
  return { help: false, mend: values.mend, skipChecksums: values['skip-checksums'], force: values.force };
}

/** @param command how the command is called, such as `npm run check-files --` */
export function checkHelp(command: string): string {
  return `Usage: ${command} [--mend] [--skip-checksums] [--force]

Compares the files in the database with the objects in the store: files without an object, objects
without a file, objects whose bytes do not match their SHA-256, rests of uploads that nobody knows, and
recorded usage that does not add up. It may run while Latchkey does.

  --mend             mend what was found: remove files whose object is missing or damaged (as if they had
                     been deleted), remove what nobody knows, and record the usage anew
  --skip-checksums   compare sizes only, which reads no object
  --force            mend even if most files have no intact object, or most objects no file
  --help             show this

Exit code: 0 nothing is wrong, or all of it was mended; 1 something is left; 2 the check could not be done.
`;
}
