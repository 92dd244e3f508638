import { USERNAME_LENGTH } from '@latchkey/contract/username';
import { isText } from '@latchkey/kit/validation/text';
import { customAlphabet } from 'nanoid';
import { isEmail, isUsername } from '../account/account-rules.ts';
import { URL_LENGTH_MAX } from './issuer-settings.ts';

export type Claims = Readonly<Record<string, unknown>>;

export interface Person {
  readonly issuer: string;
  /** Permanent id of the person at the issuer (OpenID Connect Core, 5.7). */
  readonly subject: string;
  readonly email: string | undefined;
  /** A username by the rules of accounts, as close to the person's names as they allow. */
  readonly username: string;
  readonly pictureUrl: string | undefined;
}

const SUBJECT_LENGTH_MAX = 255;
const NAME_LENGTH_MAX = 256;
const SUFFIX_LENGTH = 6;
const createSuffix = customAlphabet('abcdefghijkmnpqrstuvwxyz23456789', SUFFIX_LENGTH);

/** Claims that a username may be made from, the best first. */
const NAME_CLAIMS = ['preferred_username', 'nickname', 'name', 'email'];

/** The person of the claims, or undefined. The signed ID token takes precedence. */
export function toPerson(idToken: Claims, userInfo: Claims = {}): Person | undefined {
  const { iss: issuer, sub: subject } = idToken;
  if (!isText(issuer, URL_LENGTH_MAX) || !isText(subject, SUBJECT_LENGTH_MAX)) return undefined;
  const sources = [idToken, userInfo];
  const names = NAME_CLAIMS.flatMap((claim) => sources.map((claims) => claims[claim]));
  return {
    issuer,
    subject,
    email: sources.map(verifiedEmail).find((email) => email !== undefined),
    username:
      names
        .filter((name) => isText(name, NAME_LENGTH_MAX))
        .map(fitUsername)
        .find(isUsername) ?? 'user',
    pictureUrl: sources.map(({ picture }) => toPictureUrl(picture)).find((url) => url !== undefined),
  };
}

export function withSuffix(username: string): string {
  return `${username.slice(0, USERNAME_LENGTH.max - SUFFIX_LENGTH - 1)}-${createSuffix()}`;
}

/** An email that the same source verified. Some issuers write the boolean as text. */
function verifiedEmail({ email, email_verified }: Claims): string | undefined {
  const isVerified = email_verified === true || email_verified === 'true';
  return isVerified && typeof email === 'string' && isEmail(email) ? email : undefined;
}

/** A picture's URL that a page served by https may show. */
function toPictureUrl(value: unknown): string | undefined {
  if (!isText(value, URL_LENGTH_MAX) || !URL.canParse(value)) return undefined;
  const url = new URL(value);
  if (url.protocol !== 'https:' || url.username !== '' || url.password !== '') return undefined;
  return url.href.length <= URL_LENGTH_MAX ? url.href : undefined;
}

/** Removes accents and an email's domain; dashes replace what a username cannot have. */
function fitUsername(name: string): string {
  const plain = (name.split('@', 1)[0] ?? '').normalize('NFKD').replace(/\p{M}/gu, '');
  const dashed = plain.replace(/[^A-Za-z0-9_]+/g, '-').replace(/^-+/, '');
  return dashed.slice(0, USERNAME_LENGTH.max).replace(/-+$/, '');
}
