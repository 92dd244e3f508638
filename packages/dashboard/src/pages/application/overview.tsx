import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { applicationQuery, settingsQuery } from '../../api/queries.ts';
import { QueryView } from '../../components/states.tsx';
import { DeleteApplication } from './delete-application.tsx';
import { RuntimeKeys } from './runtime-keys.tsx';
import { Settings } from './settings.tsx';
import { Snippets } from './snippets.tsx';
import { Usage } from './usage.tsx';

const route = getRouteApi('/signed-in/applications/$applicationId');

export function Overview() {
  const { applicationId } = route.useParams();
  const { data: application } = useQuery(applicationQuery(applicationId));
  const query = useQuery(settingsQuery(applicationId));
  if (!application) return null;
  return (
    <QueryView query={query}>
      {({ settings }) => (
        <>
          <Settings applicationId={applicationId} settings={settings} />
          <RuntimeKeys application={application} />
          <Usage applicationId={applicationId} />
          <Snippets applicationId={applicationId} />
          <DeleteApplication application={application} />
        </>
      )}
    </QueryView>
  );
}
