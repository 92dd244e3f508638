import type { Application } from '@latchkey/client';
import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { latchkey } from '../../api/client.ts';
import { applicationQuery, filesMetadataQuery, liveClientsQuery, settingsQuery, usageQuery } from '../../api/queries.ts';
import { realtimeUrl, serverUrl } from '../../api/settings.ts';
import { DangerZone } from '../../components/confirm-dialog.tsx';
import { CopyFigure } from '../../components/copy-button.tsx';
import { DailyCharts } from '../../components/daily-chart.tsx';
import { Section } from '../../components/page.tsx';
import { QueryView } from '../../components/states.tsx';
import { Line } from '../../components/usage-meter.tsx';
import { readProof, SecondFactorField } from '../../session/owner-proof.tsx';
import { RuntimeKeys } from './runtime-keys.tsx';
import { Settings } from './settings.tsx';
import { useApplicationId } from './use-application-id.ts';

export function Overview() {
  const applicationId = useApplicationId();
  const { data: application } = useQuery(applicationQuery(applicationId));
  if (!application) return null;
  return (
    <QueryView query={settingsQuery(applicationId)}>
      {({ settings }) => (
        <>
          <Settings settings={settings} />
          <RuntimeKeys application={application} />
          <Usage />
          <Snippets />
          <DeleteApplication application={application} />
        </>
      )}
    </QueryView>
  );
}

function Usage() {
  const applicationId = useApplicationId();
  const { data: clients } = useQuery(liveClientsQuery(applicationId));
  return (
    <Section title="Usage" description="By day (UTC). New activity appears within 15 seconds.">
      <Line name="Live clients now" value={clients?.toLocaleString('en') ?? 'Not known'} />
      <QueryView query={usageQuery(applicationId)}>
        {(days) => (
          <DailyCharts
            caption="Usage by day"
            days={days}
            charts={{ Downloads: 'downloads', Events: 'events' }}
            others={{ Uploads: 'uploads', 'Most live clients': 'clientsMax' }}
          />
        )}
      </QueryView>
    </Section>
  );
}

function DeleteApplication({ application: { id, name } }: { readonly application: Application }) {
  const navigate = useNavigate();
  return (
    <DangerZone
      thing="application"
      name={name}
      title={`Delete ${name}?`}
      hint="Its files, levels and keys are deleted with it. This cannot be undone."
      fields={<SecondFactorField />}
      done={['Application deleted', name]}
      onConfirm={async (values) => {
        const { code = '' } = readProof(values);
        await latchkey.applications.delete(id, { code });
        // Its page would read it again.
        await navigate({ to: '/applications' });
      }}
    >
      <Files /> and both keys are deleted. Connected clients are notified and disconnected.
    </DangerZone>
  );
}

function Files() {
  const count = useQuery(filesMetadataQuery(useApplicationId())).data?.totalFiles;
  if (count === undefined) return 'Its files';
  return count === 1 ? '1 file' : `${count} files`;
}

/** First calls for an application, each to copy. */
function readSnippets(id: string) {
  const connect = `import { Latchkey } from '@latchkey/client';

const latchkey = new Latchkey({ url: '${serverUrl}', key: process.env.LATCHKEY_KEY });`;
  return [
    [
      'curl',
      `curl -H "Authorization: Bearer $LATCHKEY_KEY" \\\n  "${serverUrl}/api/v1/panel/get-application-settings?applicationId=${id}"`,
    ],
    ['Client', `${connect}\nconsole.log(await latchkey.applications.settings('${id}'));`],
    [
      'Listener',
      `import { listen } from '@latchkey/client';

// LATCHKEY_SOCKET_KEY: the socket key of ${id}
for await (const event of listen({ url: '${realtimeUrl ?? `${serverUrl.replace('http', 'ws')}/api/v1/realtime`}', socketKey: process.env.LATCHKEY_SOCKET_KEY })) {
  console.log(event.type, event.data);
}`,
    ],
  ] as const;
}

function Snippets() {
  return (
    <Section title="Use it" description="LATCHKEY_KEY is an API key that may read applications.">
      {readSnippets(useApplicationId()).map(([name, code]) => (
        <CopyFigure key={name} name={name} text={code} />
      ))}
    </Section>
  );
}
