import { isUsername } from '../account/account-rules.ts';

const USERNAME_LENGTH_MAX = 32;
const SUFFIX_LENGTH = 6;
const SUFFIX_CHARACTERS = 'abcdefghijkmnpqrstuvwxyz23456789';
/** For whoever has no name that fits. */
const FALLBACK = 'user';

/** The first of the names that makes a username by the rules of accounts (decisions 4), as close to it as they allow. */
export function usernameFrom(names: readonly string[]): string {
  return names.map(fit).find(isUsername) ?? FALLBACK;
}

/** The same username with something random at its end, for where it is taken. */
export function withSuffix(username: string, random: (bytes: number) => Buffer): string {
  const suffix = [...random(SUFFIX_LENGTH)].map((byte) => SUFFIX_CHARACTERS[byte % SUFFIX_CHARACTERS.length]).join('');
  return `${username.slice(0, USERNAME_LENGTH_MAX - SUFFIX_LENGTH - 1)}-${suffix}`;
}

/** Letters lose their accents; what is no letter, digit or underscore becomes a dash; of an email the part before the `@` counts. */
function fit(name: string): string {
  const plain = (name.split('@', 1)[0] ?? '').normalize('NFKD').replace(/\p{M}/gu, '');
  const dashed = plain.replace(/[^A-Za-z0-9_]+/g, '-').replace(/^-+/, '');
  return dashed.slice(0, USERNAME_LENGTH_MAX).replace(/-+$/, '');
}
