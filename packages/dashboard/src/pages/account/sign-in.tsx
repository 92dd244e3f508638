import type { OidcLink } from '@latchkey/client';
import { PASSWORD } from '@latchkey/contract/lengths';
import { useQuery } from '@tanstack/react-query';
import { useRouter } from '@tanstack/react-router';
import { latchkey } from '../../api/client.ts';
import { linksQuery, signInMethodsQuery } from '../../api/queries.ts';
import { Button } from '../../components/button.tsx';
import { ConfirmButton } from '../../components/confirm-dialog.tsx';
import { InputError, NewPasswordField } from '../../components/form.tsx';
import { ErrorNotice } from '../../components/notice.tsx';
import { Row, Rows, Section } from '../../components/page.tsx';
import { RelativeTime } from '../../components/relative-time.tsx';
import { ProofFields, readProof } from '../../session/owner-proof.tsx';
import { rememberReturnTo } from '../../session/return-to.ts';
import { useAccount } from '../../session/session.ts';
import { TwoFactorRow } from './two-factor.tsx';

export function SignIn() {
  return (
    <Section title="Sign-in">
      <Rows>
        <PasswordRow />
        <TwoFactorRow />
        <LinkedIssuers />
      </Rows>
    </Section>
  );
}

/** A row for each person at an issuer who can sign in to the account, then the other issuers. */
function LinkedIssuers() {
  const { data: links = [], error } = useQuery(linksQuery);
  const { data: methods } = useQuery(signInMethodsQuery);
  if (error && links.length === 0) return <ErrorNotice error={error} />;
  const unlinked = methods?.oidcIssuers.filter((name) => !links.some((link) => link.name === name)) ?? [];
  return (
    <>
      {links.map((link) => (
        <LinkedRow key={`${link.issuer} ${link.subject}`} link={link} />
      ))}
      {unlinked.map((name) => (
        <UnlinkedRow key={name} name={name} />
      ))}
    </>
  );
}

/** An issuer of this Latchkey that could sign in to the account. */
function UnlinkedRow({ name }: { readonly name: string }) {
  const router = useRouter();
  const link = async (values: FormData) => {
    const url = await latchkey.oidc.link({ issuer: name, ...readProof(values) });
    rememberReturnTo(router.state.location.href);
    location.assign(url);
  };
  return (
    <Row name={name} hint="Not linked: it cannot sign in to this account.">
      <ConfirmButton
        button={<Button aria-label={`Link ${name}`}>Link</Button>}
        title={`Link ${name}?`}
        action="Continue"
        fields={<ProofFields />}
        onConfirm={link}
      >
        You sign in there next. From then on, it signs in to this account.
      </ConfirmButton>
    </Row>
  );
}

function LinkedRow({ link: { issuer, name, subject, createdAt } }: { readonly link: OidcLink }) {
  const shownName = name ?? issuer;
  return (
    <Row
      name={shownName}
      hint={
        <>
          Signs in as <span dir="auto">{subject}</span>, linked <RelativeTime at={createdAt} />
        </>
      }
    >
      <ConfirmButton
        button={<Button aria-label={`Unlink ${shownName}`}>Unlink</Button>}
        title={`Unlink ${shownName}?`}
        action="Unlink"
        danger
        fields={<ProofFields />}
        done={[`${shownName} is unlinked`, 'All other sessions have ended.']}
        onConfirm={(values) => latchkey.oidc.unlink({ issuer, subject, ...readProof(values) })}
      >
        It no longer signs in to this account. All other sessions end.
      </ConfirmButton>
    </Row>
  );
}

function PasswordRow() {
  const { email } = useAccount();
  const change = (values: FormData) => {
    const newPassword = String(values.get('newPassword'));
    if (newPassword.length < PASSWORD.min) throw new InputError({ newPassword: `It has fewer than ${PASSWORD.min} characters.` });
    return latchkey.account.changePassword({ ...readProof(values), newPassword });
  };
  const fields = (
    <>
      {/* Password managers store the new password for this account. */}
      <input type="hidden" name="username" autoComplete="username" value={email} />
      <ProofFields label="Current password" />
      <NewPasswordField
        required={false}
        hint={`At least ${PASSWORD.min} characters. A sentence is easier to remember, and harder to guess.`}
      />
    </>
  );
  return (
    <Row name="Password" hint="Changing it ends all other sessions.">
      <ConfirmButton
        button={<Button>Change password</Button>}
        title="Change password"
        action="Change password"
        fields={fields}
        done={['Password changed', 'All other sessions have ended.']}
        onConfirm={change}
      >
        All other sessions end. API keys stay.
      </ConfirmButton>
    </Row>
  );
}
