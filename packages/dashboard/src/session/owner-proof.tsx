import type { OwnerProof } from '@latchkey/client';
import { FRESH_SESSION_MINUTES } from '@latchkey/contract/limits';
import { useQuery } from '@tanstack/react-query';
import { linksQuery } from '../api/queries.ts';
import { CodeField, TextField } from '../components/form.tsx';
import { useAccount } from './session.ts';

/** Inputs that prove that the owner uses the session: {@link readProof} reads them. */
export function ProofFields({ label = 'Password' }: { readonly label?: string }) {
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
            ? `If your account has none, leave it empty: you have to have signed in within the last ${FRESH_SESSION_MINUTES} minutes.`
            : undefined
        }
      />
      <SecondFactorField />
    </>
  );
}

/** The code, if the account has a second factor. */
export const SecondFactorField = () => (useAccount().twoFactorEnabled ? <CodeField /> : null);

export function readProof(values: FormData): OwnerProof {
  const password = String(values.get('password') ?? '');
  const code = String(values.get('code') ?? '').trim();
  return { ...(password !== '' && { password }), ...(code !== '' && { code }) };
}
