import { withoutInvisible } from '@latchkey/contract/invisible';
import { closestMatch } from 'leven';
import { CliError } from '../program/errors.ts';

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const LISTED_IDS_MAX = 5;

export const isId = (text: string): boolean => UUID.test(text);

export interface Named {
  readonly id: string;
  readonly name: string;
}

/** Finds the one that a user means, and suggests the nearest name. Names need not be unique. */
export function findByNameOrId<T extends Named>(all: readonly T[], wanted: string, noun: string, listCommand: string): T {
  const byId = all.find(({ id }) => id === wanted.toLowerCase());
  const storedName = withoutInvisible(wanted);
  const [byName, ...others] = all.filter(({ name }) => name === storedName);
  const found = byId ?? byName;
  if (found && (byId || others.length === 0)) return found;
  if (byName) {
    const ids = [byName, ...others].slice(0, LISTED_IDS_MAX).map(({ id }) => id);
    throw new CliError('usage', `${others.length + 1} ${noun}s are called "${wanted}". Use an id: ${ids.join(', ')}.`);
  }
  const maxDistance = Math.max(2, Math.floor(wanted.length / 3));
  const nearest = closestMatch(
    wanted,
    all.map(({ name }) => name),
    { maxDistance },
  );
  const next = nearest === undefined ? `Run "${listCommand}" to see them all.` : `Did you mean "${nearest}"?`;
  throw new CliError('notFound', `No ${noun} ${isId(wanted) ? 'has the id' : 'is called'} "${wanted}". ${next}`);
}
