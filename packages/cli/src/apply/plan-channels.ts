import type { CurrentApplication, WantedApplication } from './state.ts';

export interface ChannelChange {
  readonly action: 'publish' | 'rollout';
  readonly channel: string;
  readonly version: string;
  readonly releaseId: string;
  /** Absent if the roll-out is that of the draft. */
  readonly rolloutPercent?: number;
}

export function planChannels({ channels = {} }: WantedApplication, found: CurrentApplication | undefined) {
  const problems: string[] = [];
  const changes: ChannelChange[] = [];
  for (const [channel, { version, rolloutPercent }] of Object.entries(channels)) {
    const releases = (found?.releases ?? []).filter((release) => release.channel === channel);
    const release = releases.find((candidate) => candidate.version === version);
    const change = { channel, version, releaseId: release?.id ?? '', ...(rolloutPercent !== undefined && { rolloutPercent }) };
    // A channel only goes up, so the last publication is the highest.
    const later = releases.find(
      ({ status, publishedAt }) => status === 'published' && (publishedAt ?? '') > (release?.publishedAt ?? ''),
    );
    if (!release)
      problems.push(`channel ${channel} has no release ${version}. Draft it with "latchkey release publish --draft".`);
    else if (release.status === 'yanked') problems.push(`${version} of channel ${channel} was yanked. Declare another version.`);
    else if (release.status === 'draft') changes.push({ action: 'publish', ...change });
    else if (later) problems.push(`channel ${channel} has published ${later.version} after ${version}. Declare or yank it.`);
    else if (rolloutPercent !== undefined && rolloutPercent !== release.rolloutPercent)
      changes.push({ action: 'rollout', ...change });
  }
  return { changes, problems };
}
