import {
  ARTIFACT_KEY_RULE,
  ARTIFACT_LABEL,
  ARTIFACT_LABEL_RULE,
  ARTIFACT_NAME,
  ARTIFACTS_MAX,
  artifactKey,
} from '@latchkey/contract/artifact';
import {
  CHANNEL,
  CHANNEL_RULE,
  isSemver,
  RELEASE_NOTES_MAX,
  SEMVER_RULE,
  SIGNATURE_MAX,
  YANK_REASON_MAX,
} from '@latchkey/contract/release';
import { parseId } from '@latchkey/kit/validation/id';
import { hasLength } from '@latchkey/kit/validation/text';
import type { ReleaseArtifact } from '@latchkey/proto/latchkey/apps/v1/release_pb';
import { errors } from '../proto-errors.ts';

/** An artifact of a draft, as a caller sent it. */
type GivenArtifact = Pick<ReleaseArtifact, 'fileId' | 'name' | 'platform' | 'arch' | 'kind' | 'signature'>;

/** Properties of a draft. Absent ones stay as they are. */
export interface ReleaseChange {
  readonly version?: string | undefined;
  readonly channel?: string | undefined;
  readonly notes?: string | undefined;
  readonly rolloutPercent?: number | undefined;
  readonly artifacts?: readonly GivenArtifact[] | undefined;
}

/**
 * The columns of a change.
 *
 * @throws `release_invalid`
 */
export function parseReleaseChange({ version, channel, notes, rolloutPercent, artifacts }: ReleaseChange) {
  if (version !== undefined) check(isSemver(version), 'version', SEMVER_RULE);
  if (channel !== undefined) check(CHANNEL.test(channel), 'channel', CHANNEL_RULE);
  if (notes !== undefined) check(hasLength(notes, 0, RELEASE_NOTES_MAX), 'notes', 'is too long');
  if (rolloutPercent !== undefined) checkRollout(rolloutPercent);
  return {
    columns: {
      ...(version !== undefined && { version }),
      ...(channel !== undefined && { channel }),
      ...(notes !== undefined && { notes }),
      ...(rolloutPercent !== undefined && { rollout_percent: rolloutPercent }),
    },
    artifacts: artifacts && parseArtifacts(artifacts),
  };
}

export function checkRollout(percent: number): void {
  check(Number.isInteger(percent) && percent >= 0 && percent <= 100, 'rolloutPercent', 'must be a whole number from 0 to 100');
}

export function checkYankReason(reason: string): void {
  check(hasLength(reason, 0, YANK_REASON_MAX), 'reason', 'is too long');
}

function parseArtifacts(artifacts: readonly GivenArtifact[]) {
  check(artifacts.length <= ARTIFACTS_MAX, 'artifacts', `must be at most ${ARTIFACTS_MAX}`);
  check(new Set(artifacts.map(artifactKey)).size === artifacts.length, 'artifacts', ARTIFACT_KEY_RULE);
  return artifacts.map(({ fileId, name, platform, arch, kind, signature }) => {
    const id = parseId(fileId);
    check(id !== undefined, 'artifacts', 'must name files of the application');
    check(hasLength(name, ARTIFACT_NAME.min, ARTIFACT_NAME.max), 'artifacts', 'must have names of 1 to 128 characters');
    check(
      [platform, arch, kind].every((label) => ARTIFACT_LABEL.test(label)),
      'artifacts',
      ARTIFACT_LABEL_RULE,
    );
    check(hasLength(signature, 0, SIGNATURE_MAX), 'artifacts', 'has a signature that is too long');
    return { file_id: id, name, platform, arch, kind, signature };
  });
}

function check(isValid: boolean, path: string, message: string): asserts isValid {
  if (!isValid) throw errors.release_invalid().withDetails({ path, message });
}
