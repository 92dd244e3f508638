import { isStorable } from '@latchkey/kit/text';
import { isEmail } from '../account/account-rules.ts';

/** What an issuer says of somebody, in its ID token or at its UserInfo endpoint. */
export type Claims = Readonly<Record<string, unknown>>;

/** Whoever signed in at an issuer. */
export interface Person {
  /** The issuer as its token names it. */
  readonly issuer: string;
  /** Who they are there, for ever (OpenID Connect Core, 5.7). */
  readonly subject: string;
  /** Undefined unless the issuer has verified that it is theirs. */
  readonly email: string | undefined;
  /** What they are called, the best first. */
  readonly names: readonly string[];
  readonly pictureUrl: string | undefined;
}

const SUBJECT_LENGTH_MAX = 255;
const ISSUER_LENGTH_MAX = 2_048;
const PICTURE_URL_LENGTH_MAX = 2_048;
const NAME_LENGTH_MAX = 256;

/** Claims from which a username may be made, the best first. */
const NAME_CLAIMS = ['preferred_username', 'nickname', 'name', 'email'];

/** Whether the ID token leaves something to ask of the UserInfo endpoint: many say little in a token (Core, 5.4). */
export function isSparse(idToken: Claims): boolean {
  return typeof idToken.email !== 'string' || typeof idToken.picture !== 'string';
}

/**
 * What is known of whoever signed in, or undefined where the issuer names nobody whom an account could be linked to. The ID token, which is signed,
 * comes before what the UserInfo endpoint answered.
 */
export function toPerson(idToken: Claims, userInfo: Claims = {}): Person | undefined {
  const { iss: issuer, sub: subject } = idToken;
  if (!isText(issuer, ISSUER_LENGTH_MAX) || !isText(subject, SUBJECT_LENGTH_MAX)) return undefined;
  const sources = [idToken, userInfo];
  return {
    issuer,
    subject,
    email: sources.map(verifiedEmail).find((email) => email !== undefined),
    names: NAME_CLAIMS.flatMap((claim) => sources.map((claims) => claims[claim])).filter((name) => isText(name, NAME_LENGTH_MAX)),
    pictureUrl: sources.map(({ picture }) => toPictureUrl(picture)).find((url) => url !== undefined),
  };
}

function isText(value: unknown, lengthMax: number): value is string {
  return typeof value === 'string' && value !== '' && value.length <= lengthMax && isStorable(value);
}

/** The email, if the same source says that it is verified. Some issuers write the boolean as text. */
function verifiedEmail({ email, email_verified }: Claims): string | undefined {
  const verified = email_verified === true || email_verified === 'true';
  return verified && typeof email === 'string' && isEmail(email) ? email : undefined;
}

/** The URL of a picture that a page served by https may show. Nobody here ever opens it. */
function toPictureUrl(value: unknown): string | undefined {
  if (typeof value !== 'string' || value.length > PICTURE_URL_LENGTH_MAX || !URL.canParse(value)) return undefined;
  const url = new URL(value);
  if (url.protocol !== 'https:' || url.username !== '' || url.password !== '') return undefined;
  return url.href.length <= PICTURE_URL_LENGTH_MAX ? url.href : undefined;
}
