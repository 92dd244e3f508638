/** Platform, architecture or kind of an artifact. */
export const ARTIFACT_LABEL = /^[A-Za-z0-9._-]{1,32}$/;
export const ARTIFACT_LABEL_RULE = 'must be 1 to 32 ASCII letters, digits, dots, underscores and dashes';

/** Key of an artifact: a release has one artifact of each. */
export const artifactKey = (of: { readonly platform: string; readonly arch: string; readonly kind: string }): string =>
  `${of.platform} ${of.arch} ${of.kind}`;
export const ARTIFACT_KEY_RULE = 'must have one artifact for each platform, arch and kind';

export const ARTIFACT_NAME = { min: 1, max: 128 } as const;
export const ARTIFACTS_MAX = 32;
