import { STABLE_CHANNEL } from '@latchkey/contract/release';
import { useMutation, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { latchkey } from '../../../api/client.ts';
import { releaseSettingsQuery } from '../../../api/queries.ts';
import { serverUrl } from '../../../api/settings.ts';
import { CopyFigure } from '../../../components/copy-figure.tsx';
import { SelectField } from '../../../components/form.tsx';
import { Section } from '../../../components/page.tsx';
import { QueryView } from '../../../components/states.tsx';
import { toast } from '../../../toast/toasts.ts';
import { SwitchRow } from '../switch-row.tsx';

/** Updaters, each with the path of its feed below that of the channel. */
const UPDATERS = [
  ['Tauri', '/tauri/{{target}}/{{arch}}/{{current_version}}'],
  ['electron-updater', ''],
  ['Sparkle', '/appcast.xml'],
  ['Other updaters', '/latest.json'],
] as const;

interface FeedsProps {
  readonly applicationId: string;
  /** Channels of the releases, with repetitions. */
  readonly channels: readonly string[];
}

/** URLs for the configuration of updaters. */
export function Feeds({ applicationId, channels }: FeedsProps) {
  const [channel, setChannel] = useState<string>(STABLE_CHANNEL);
  return (
    <Section title="Feeds" description="Updaters read these URLs. electron-updater needs the provider “generic”.">
      <PublicUpdates applicationId={applicationId} />
      <SelectField name="channel" label="Channel" value={channel} onChange={({ currentTarget: { value } }) => setChannel(value)}>
        {[...new Set([STABLE_CHANNEL, ...channels])].map((name) => (
          <option key={name}>{name}</option>
        ))}
      </SelectField>
      {UPDATERS.map(([name, path]) => (
        <CopyFigure key={name} name={name} text={`${serverUrl}/api/v1/updates/${applicationId}/${channel}${path}`} />
      ))}
    </Section>
  );
}

function PublicUpdates({ applicationId }: Pick<FeedsProps, 'applicationId'>) {
  const settings = releaseSettingsQuery(applicationId);
  const change = useMutation({
    mutationFn: (publicUpdates: boolean) => latchkey.releases.updateSettings(applicationId, { publicUpdates }),
    onError: (error) => toast.error('“Public updates” was not changed', error),
  });
  return (
    <QueryView query={useQuery(settings)}>
      {({ publicUpdates }) => (
        <SwitchRow
          title="Public updates"
          hint="Feeds need no key. Otherwise requests have the header Authorization: Bearer <HTTP key>."
          checked={change.isPending ? change.variables : publicUpdates}
          onChange={(isPublic) => change.mutate(isPublic)}
        />
      )}
    </QueryView>
  );
}
