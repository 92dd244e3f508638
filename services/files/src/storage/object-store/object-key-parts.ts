import { parseId } from '@latchkey/kit/id';

/** The two ids that a key is made of. */
export interface ObjectKeyParts {
  readonly applicationId: string;
  readonly fileId: string;
}

/** Whether a text is an id in its canonical form. */
export function isId(text: string): boolean {
  return parseId(text) === text;
}

/** The ids of a key, or undefined where it is none: only these two, so that no key leads out of the store's own folder or prefix. */
export function parseObjectKey(key: string): ObjectKeyParts | undefined {
  const [applicationId = '', fileId = '', ...more] = key.split('/');
  return more.length === 0 && isId(applicationId) && isId(fileId) ? { applicationId, fileId } : undefined;
}

/** The ids of a key. Throws for anything else. */
export function requireObjectKey(key: string): ObjectKeyParts {
  const parts = parseObjectKey(key);
  if (!parts) throw new TypeError('an object key is <application id>/<file id>');
  return parts;
}
