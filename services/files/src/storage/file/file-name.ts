import { withoutInvisible } from '@latchkey/kit/text';
import { errors } from '../../errors.ts';

/** Specification 2.5, rules 1 to 3. */
const FILE_NAME = /^[A-Za-z0-9_-]+(?:[ .][A-Za-z0-9_-]+)*$/;
const LENGTH_MAX = 16;

/** The name as it is kept (specification 2.5, decisions 7). Throws `file_name_invalid`. */
export function parseFileName(text: string): string {
  const name = withoutInvisible(text);
  if (name.length > LENGTH_MAX || !FILE_NAME.test(name)) throw errors.file_name_invalid();
  return name;
}
