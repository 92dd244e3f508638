import {
  ARTIFACT_KEY_RULE,
  ARTIFACT_LABEL,
  ARTIFACT_LABEL_RULE,
  ARTIFACT_NAME,
  ARTIFACTS_MAX,
  artifactKey,
} from '@latchkey/contract/artifact';
import { describeLength } from '@latchkey/contract/lengths';
import * as contract from '@latchkey/contract/release';
import { parseId } from '@latchkey/kit/validation/id';
import { hasLength } from '@latchkey/kit/validation/text';
import type { ReleaseArtifact } from '@latchkey/proto/latchkey/apps/v1/release_pb';
import semver from 'semver';
import { errors } from '../proto-errors.ts';

/** An artifact of a draft, as a caller sent it. */
type GivenArtifact = Pick<ReleaseArtifact, 'fileId' | 'name' | 'platform' | 'arch' | 'kind' | 'signature'>;

/** Properties of a draft or of a request about a release. Absent ones stay as they are. */
export interface ReleaseProperties {
  readonly version?: string | undefined;
  readonly channel?: string | undefined;
  readonly notes?: string | undefined;
  readonly rolloutPercent?: number | undefined;
  readonly artifacts?: readonly GivenArtifact[] | undefined;
  readonly reason?: string | undefined;
}

type Rule<T> = readonly [isValid: (value: T) => boolean, message: string];

const RULES: { readonly [P in keyof ReleaseProperties]-?: ReadonlyArray<Rule<NonNullable<ReleaseProperties[P]>>> } = {
  version: [[contract.isSemver, contract.SEMVER_RULE]],
  channel: [[(text) => contract.CHANNEL.test(text), contract.CHANNEL_RULE]],
  notes: [[(text) => hasLength(text, 0, contract.RELEASE_NOTES_MAX), 'is too long']],
  rolloutPercent: [[(n) => Number.isInteger(n) && n >= 0 && n <= 100, 'must be a whole number from 0 to 100']],
  artifacts: [
    [({ length }) => length <= ARTIFACTS_MAX, `must be at most ${ARTIFACTS_MAX}`],
    [(given) => new Set(given.map(artifactKey)).size === given.length, ARTIFACT_KEY_RULE],
    each(({ fileId }) => parseId(fileId) !== undefined, 'must name files of the application'),
    each(
      ({ name }) => hasLength(name, ARTIFACT_NAME.min, ARTIFACT_NAME.max),
      `must have names of ${describeLength(ARTIFACT_NAME)}`,
    ),
    each(({ platform, arch, kind }) => [platform, arch, kind].every((label) => ARTIFACT_LABEL.test(label)), ARTIFACT_LABEL_RULE),
    each(({ signature }) => hasLength(signature, 0, contract.SIGNATURE_MAX), 'has a signature that is too long'),
  ],
  reason: [[(text) => hasLength(text, 0, contract.YANK_REASON_MAX), 'is too long']],
};

function each(isValid: (artifact: GivenArtifact) => boolean, message: string): Rule<readonly GivenArtifact[]> {
  return [(artifacts) => artifacts.every(isValid), message];
}

/** Throws `release_invalid` with the first rule that a property breaks. */
export function checkRelease(given: ReleaseProperties): void {
  for (const path of Object.keys(RULES) as Array<keyof typeof RULES>) {
    const value = given[path];
    const broken = value !== undefined && RULES[path].find(([isValid]) => !isValid(value as never));
    if (broken) throw errors.release_invalid().withDetails({ path, message: broken[1] });
  }
}

/** Valid artifacts of a request as they are stored. */
export const toStored = (artifacts: readonly GivenArtifact[]) =>
  JSON.stringify(
    artifacts.map(({ fileId, name, platform, arch, kind, signature }) => {
      return { fileId: parseId(fileId), name, platform, arch, kind, signature };
    }),
  );

interface Versioned {
  readonly version: string;
}

/** The highest version first, in the order of Semantic Versioning. */
export const byVersion = (a: Versioned, b: Versioned) => semver.compare(b.version, a.version);

/** A channel only goes up: a release must be higher than all that were published before. */
export const isDowngrade = (release: Versioned, published: readonly Versioned[]) =>
  published.some((other) => semver.compare(other.version, release.version) >= 0);
