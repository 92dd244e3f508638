import { describeLength, VERSION } from './lengths.ts';

/** Semantic Versioning 2.0.0, with at most 15 digits in major, minor and patch. */
export const SEMVER =
  /^(?:0|[1-9]\d{0,14})(?:\.(?:0|[1-9]\d{0,14})){2}(?:-(?:0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*)(?:\.(?:0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*))*)?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?$/;

export const SEMVER_RULE = `must be a Semantic Version such as 1.4.0, ${describeLength(VERSION)}`;

export const isSemver = (text: string) => text.length <= VERSION.max && SEMVER.test(text);

export const CHANNEL = /^[a-z0-9-]{1,32}$/;
export const CHANNEL_RULE = 'must be 1 to 32 of a-z, 0-9 and -';
export const STABLE_CHANNEL = 'stable';

export const RELEASE_NOTES_MAX = 10_000;
export const YANK_REASON_MAX = 500;
export const SIGNATURE_MAX = 1_024;
export const SIGNING_KEYS_MAX = 8;
/** A minisign public key: `Ed`, the key's id and the key, in Base64. */
export const SIGNING_KEY = /^RW[Q-T][A-Za-z0-9+/]{53}$/;
export const SIGNING_KEY_RULE = 'must be a minisign public key: the 56 characters that begin with RW';

/** Most releases of an application, drafts included. */
export const RELEASES_MAX = 500;
/** Number of a channel's highest versions in its feed. */
export const FEED_RECENT_RELEASES = 10;
/** Most releases of a feed: lower ones are for platforms and clients without the highest. */
export const FEED_RELEASES_MAX = 20;
/** Notes of a feed in all, in UTF-16 units: the longest ones of the highest version fit. */
export const FEED_NOTES_LENGTH_MAX = 2 * RELEASE_NOTES_MAX;
/** A feed as it is stored, in bytes of JSON. */
export const FEED_BYTES_MAX = 256 * 1024;
