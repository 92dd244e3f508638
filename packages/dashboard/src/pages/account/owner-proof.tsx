import type { OwnerProof } from '@latchkey/client';
import { useQuery } from '@tanstack/react-query';
import { CodeField, TextField } from '../../components/text-field.tsx';
import { useAccount } from '../../session/session.ts';
import { linksQuery } from './queries.ts';

/** Inputs that prove that the owner uses the session: {@link readProof} reads them. */
export function OwnerProofFields({ label = 'Password' }: { readonly label?: string }) {
  const { twoFactorEnabled } = useAccount();
  const { data: links = [] } = useQuery(linksQuery);
  return (
    <>
      <TextField
        name="password"
        label={label}
        type="password"
        autoComplete="current-password"
        hint={
          links.length > 0
            ? 'If your account has none, leave it empty: you have to have signed in within the last 10 minutes.'
            : undefined
        }
      />
      {twoFactorEnabled && (
        <CodeField label="Two-factor code" hint="Six digits from your authenticator app, or a recovery code." />
      )}
    </>
  );
}

export function readProof(values: FormData): OwnerProof {
  const password = String(values.get('password') ?? '');
  const code = String(values.get('code') ?? '').trim();
  return { ...(password !== '' && { password }), ...(code !== '' && { code }) };
}
