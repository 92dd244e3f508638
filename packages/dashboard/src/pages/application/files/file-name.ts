import { FILE_NAME, FILE_NAME_LENGTH_MAX as LENGTH_MAX } from '@latchkey/contract/file-name';
import { withoutInvisible } from '@latchkey/contract/invisible';

const EXTENSION = /(?:\.tar)?\.[A-Za-z0-9]{1,7}$/;

export const NAME_RULE = `1 to ${LENGTH_MAX} letters, digits, dashes and underscores, with single spaces or dots between them.`;

/** Reason why files cannot have this name; undefined if they can. */
export function findNameProblem(name: string): string | undefined {
  const text = withoutInvisible(name);
  if (text === '') return 'Enter a name.';
  const { length } = [...text];
  if (length > LENGTH_MAX) return `${length} characters: names have at most ${LENGTH_MAX}.`;
  return FILE_NAME.test(text) ? undefined : 'Letters, digits, - and _ only, with single spaces or dots between them.';
}

/** A valid name with a number, for a second file of a name: `setup-2.exe`. */
export function numberName(name: string, number: number): string {
  const [extension = ''] = EXTENSION.exec(name) ?? [];
  const end = `-${number}${extension}`;
  const base = name.slice(0, name.length - extension.length).slice(0, LENGTH_MAX - end.length);
  return base.replace(/[ .]$/, '') + end;
}

/** A valid name that is as much as possible like the given one, with its extension. */
export function suggestName(name: string): string {
  const text = withoutInvisible(name);
  if (findNameProblem(text) === undefined) return text;
  const [extension = ''] = EXTENSION.exec(text) ?? [];
  const base = text
    .slice(0, text.length - extension.length)
    .normalize('NFD')
    .replace(/\p{M}/gu, '')
    .replace(/[^A-Za-z0-9_.-]+/g, '-')
    .replace(/\.{2,}/g, '.')
    .slice(0, LENGTH_MAX - extension.length)
    .replace(/^[-.]+|[-.]+$/g, '');
  return (base || 'file') + extension;
}
