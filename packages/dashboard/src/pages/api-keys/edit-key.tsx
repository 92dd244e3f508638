import type { ApiKey } from '@latchkey/client';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { latchkey } from '../../api/client.ts';
import { Button } from '../../components/button.tsx';
import { ConfirmDialog } from '../../components/confirm-dialog.tsx';
import { DailyCharts } from '../../components/daily-chart.tsx';
import { Dialog } from '../../components/dialog.tsx';
import { QueryView } from '../../components/states.tsx';
import { limitsQuery } from '../../session/session.ts';
import { toast } from '../../toast/toasts.ts';
import { KeyForm } from './key-form.tsx';
import { apiKeysQuery, requestsQuery } from './queries.ts';

interface EditKeyProps {
  /** The key to change; undefined while no dialog is open. */
  readonly apiKey: ApiKey | undefined;
  readonly onClose: () => void;
}

export function EditKeyDialog({ apiKey, onClose }: EditKeyProps) {
  return (
    <Dialog open={apiKey !== undefined} onClose={onClose} stays wide title="Edit API key">
      {apiKey && <EditForm key={apiKey.id} apiKey={apiKey} onClose={onClose} />}
    </Dialog>
  );
}

function EditForm({ apiKey, onClose }: { readonly apiKey: ApiKey; readonly onClose: () => void }) {
  const [isRevoking, setRevoking] = useState(false);
  const queryClient = useQueryClient();
  const change = useMutation({
    mutationFn: (changes: Parameters<typeof latchkey.apiKeys.update>[1]) => latchkey.apiKeys.update(apiKey.id, changes),
    onSuccess: async (_key, { name }) => {
      await queryClient.invalidateQueries({ queryKey: apiKeysQuery.queryKey });
      toast.success('API key changed', name);
      onClose();
    },
  });
  return (
    <>
      <QueryView query={useQuery(requestsQuery(apiKey.id))}>
        {(days) => <DailyCharts caption="Requests by day" days={days} charts={{ Requests: 'requests' }} />}
      </QueryView>
      <KeyForm
        apiKey={apiKey}
        action="Save changes"
        isPending={change.isPending}
        error={change.error}
        onSubmit={(key) => change.mutate(withoutSameExpiry(key, apiKey))}
        onCancel={onClose}
      >
        <Button variant="dangerOutline" onClick={() => setRevoking(true)}>
          Revoke…
        </Button>
      </KeyForm>
      <RevokeDialog apiKey={apiKey} open={isRevoking} onClose={() => setRevoking(false)} onRevoked={onClose} />
    </>
  );
}

/** The present expiry may have passed while the dialog was open; only others have to be in the future. */
function withoutSameExpiry<K extends { readonly expiresAt?: string | null }>(key: K, { expiresAt: present }: ApiKey) {
  const { expiresAt, ...others } = key;
  return expiresAt === present ? others : key;
}

interface RevokeProps {
  readonly apiKey: ApiKey;
  readonly open: boolean;
  readonly onClose: () => void;
  readonly onRevoked?: () => void;
}

export function RevokeDialog({ apiKey: { id, name }, open, onClose, onRevoked }: RevokeProps) {
  const queryClient = useQueryClient();
  const revoke = async () => {
    await latchkey.apiKeys.revoke(id);
    await queryClient.invalidateQueries({ queryKey: apiKeysQuery.queryKey });
    void queryClient.invalidateQueries({ queryKey: limitsQuery.queryKey });
    toast.success('API key revoked', name);
    onRevoked?.();
  };
  return (
    <ConfirmDialog open={open} onClose={onClose} title={`Revoke ${name}?`} action="Revoke API key" danger onConfirm={revoke}>
      Every request with this key is rejected from now on. This cannot be undone.
    </ConfirmDialog>
  );
}
