import type { Application } from '@latchkey/client';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { latchkey } from '../../api/client.ts';
import { Button } from '../../components/button.tsx';
import { ConfirmButton } from '../../components/confirm-dialog.tsx';
import { Section } from '../../components/page.tsx';
import { Row } from '../../components/row.tsx';
import { limitsQuery } from '../../session/session.ts';
import { toast } from '../../toast/toasts.ts';
import { applicationsQuery } from '../applications/queries.ts';
import { filesMetadataQuery } from './queries.ts';

export function DeleteApplication({ application: { id, name } }: { readonly application: Application }) {
  const queryClient = useQueryClient();
  const navigate = useNavigate();
  const remove = async ({ code }: { readonly code: string }) => {
    await latchkey.applications.delete(id, { code });
    toast.success('Application deleted', name);
    await navigate({ to: '/applications' });
    await queryClient.invalidateQueries({ queryKey: applicationsQuery.queryKey });
    await queryClient.invalidateQueries({ queryKey: limitsQuery.queryKey });
  };
  return (
    <Section title="Danger zone" dangerous>
      <Row name="Delete this application" hint="Its files, levels and keys are deleted with it. This cannot be undone.">
        <ConfirmButton
          button={
            <Button variant="dangerOutline" icon="trash">
              Delete application
            </Button>
          }
          title={`Delete ${name}?`}
          action="Delete application"
          danger
          typeName={name}
          needsCode
          onConfirm={remove}
        >
          <Files applicationId={id} /> and both keys are deleted. Connected clients are notified and disconnected.
        </ConfirmButton>
      </Row>
    </Section>
  );
}

function Files({ applicationId }: { readonly applicationId: string }) {
  const count = useQuery(filesMetadataQuery(applicationId)).data?.totalFiles;
  if (count === undefined) return 'Its files';
  return count === 1 ? '1 file' : `${count} files`;
}
