import { useMutation, useQuery } from '@tanstack/react-query';
import { toString as toQrCode } from 'qrcode';
import { latchkey } from '../../api/client.ts';
import { Button } from '../../components/button.tsx';
import { CopyButton } from '../../components/copy-button.tsx';
import { CodeField, Form } from '../../components/form.tsx';
import { QueryView } from '../../components/states.tsx';
import styles from './account.module.css';

interface SetUpProps {
  readonly onEnabled: (recoveryCodes: readonly string[]) => unknown;
  readonly onCancel: () => void;
}

export function TwoFactorSetUp({ onEnabled, onCancel }: SetUpProps) {
  // Each request makes another secret. It does not stay in the cache.
  const query = useQuery({
    queryKey: ['two-factor-set-up'],
    queryFn: async ({ signal }) => {
      const { secret, otpauthUrl } = await latchkey.twoFactor.setUp({ signal });
      return { secret, qrCode: await toQrCode(otpauthUrl, { type: 'svg' }) };
    },
    staleTime: 'static',
    gcTime: 0,
  });
  const enabling = useMutation({
    mutationFn: (values: FormData) => latchkey.twoFactor.enable(String(values.get('code')).trim()),
    onSuccess: onEnabled,
  });
  return (
    <QueryView query={query} action={<Button onClick={onCancel}>Cancel</Button>}>
      {({ secret, qrCode }) => (
        <Form submission={enabling} action="Turn on" onCancel={onCancel}>
          <ol className={`${styles.steps} stack`}>
            <li>
              <p>Scan this with an authenticator app, or enter the key by hand.</p>
              <img
                className={styles.qr}
                src={`data:image/svg+xml,${encodeURIComponent(qrCode)}`}
                alt="QR code for the authenticator app"
              />
              <p className="cluster">
                <code>{secret.replace(/(.{4})(?=.)/g, '$1 ')}</code> <CopyButton value={secret} label="Copy key" />
              </p>
            </li>
            <li>
              <CodeField label="Code of the app" hint="Six digits. All other sessions end when it is right." />
            </li>
          </ol>
        </Form>
      )}
    </QueryView>
  );
}
