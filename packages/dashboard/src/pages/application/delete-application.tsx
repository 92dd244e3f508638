import type { Application } from '@latchkey/client';
import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { latchkey } from '../../api/client.ts';
import { filesMetadataQuery } from '../../api/queries.ts';
import { DangerZone } from '../../components/danger-zone.tsx';
import { readProof, SecondFactorField } from '../../session/owner-proof.tsx';

export function DeleteApplication({ application: { id, name } }: { readonly application: Application }) {
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
      <Files applicationId={id} /> and both keys are deleted. Connected clients are notified and disconnected.
    </DangerZone>
  );
}

function Files({ applicationId }: { readonly applicationId: string }) {
  const count = useQuery(filesMetadataQuery(applicationId)).data?.totalFiles;
  if (count === undefined) return 'Its files';
  return count === 1 ? '1 file' : `${count} files`;
}
