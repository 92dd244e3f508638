import { describeLength, VERSION } from './lengths.ts';

/** Semantic Versioning 2.0.0, with numbers that are exact in JavaScript. */
export const SEMVER =
  /^(?:0|[1-9]\d{0,14})(?:\.(?:0|[1-9]\d{0,14})){2}(?:-(?:0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*)(?:\.(?:0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*))*)?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?$/;

export const SEMVER_RULE = `must be a Semantic Version such as 1.4.0, ${describeLength(VERSION)}`;

export const isSemver = (text: string) => text.length <= VERSION.max && SEMVER.test(text);

export const CHANNEL = /^[a-z0-9-]{1,32}$/;
export const CHANNEL_RULE = 'must be 1 to 32 of a-z, 0-9 and -';
export const STABLE_CHANNEL = 'stable';

/** Platform, architecture or kind of an artifact. */
export const ARTIFACT_LABEL = /^[A-Za-z0-9._-]{1,32}$/;
export const ARTIFACT_LABEL_RULE = 'must be 1 to 32 ASCII letters, digits, dots, underscores and dashes';

/** Key of an artifact: a release has one artifact of each. */
export const artifactKey = (of: { readonly platform: string; readonly arch: string; readonly kind: string }): string =>
  `${of.platform} ${of.arch} ${of.kind}`;
export const ARTIFACT_KEY_RULE = 'must have one artifact for each platform, arch and kind';

export const ARTIFACT_NAME = { min: 1, max: 128 } as const;
export const ARTIFACTS_MAX = 32;
export const RELEASE_NOTES_MAX = 10_000;
export const YANK_REASON_MAX = 500;
export const SIGNATURE_MAX = 1_024;
export const SIGNING_KEYS_MAX = 8;
/** A minisign public key: `Ed`, the key's id and the key, in Base64. */
export const SIGNING_KEY = /^RW[Q-T][A-Za-z0-9+/]{53}$/;
export const SIGNING_KEY_RULE = 'must be a minisign public key: the 56 characters that begin with RW';

/** Releases of an application at most, drafts included. */
export const RELEASES_MAX = 500;
/** Releases of a feed at most, the highest versions. */
export const FEED_RELEASES_MAX = 10;
/** Releases of a list at most, the newest. */
export const RELEASES_LISTED_MAX = 100;
