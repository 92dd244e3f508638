import type { OidcLink } from '@latchkey/client';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useRouter } from '@tanstack/react-router';
import { latchkey } from '../../api/client.ts';
import { Button } from '../../components/button.tsx';
import { ErrorNotice } from '../../components/notice.tsx';
import { RelativeTime } from '../../components/relative-time.tsx';
import { Row } from '../../components/row.tsx';
import { rememberReturnTo } from '../../session/return-to.ts';
import { signInMethodsQuery } from '../../session/session.ts';
import { toast } from '../../toast/toasts.ts';
import { readProof } from './owner-proof.tsx';
import { ProofButton } from './proof-dialog.tsx';
import { linksQuery, sessionsQuery } from './queries.ts';

/** A row for each person at an issuer who can sign in to the account, then the other issuers. */
export function LinkedIssuers() {
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
      <ProofButton
        button={<Button aria-label={`Link ${name}`}>Link</Button>}
        title={`Link ${name}?`}
        description="You sign in there next. From then on, it signs in to this account."
        action="Continue"
        onConfirm={link}
      />
    </Row>
  );
}

function LinkedRow({ link: { issuer, name, subject, createdAt } }: { readonly link: OidcLink }) {
  const queryClient = useQueryClient();
  const shownName = name ?? issuer;
  const unlink = async (values: FormData) => {
    await latchkey.oidc.unlink({ issuer, subject, ...readProof(values) });
    await queryClient.invalidateQueries({ queryKey: linksQuery.queryKey });
    await queryClient.invalidateQueries({ queryKey: sessionsQuery.queryKey });
    toast.success(`${shownName} is unlinked`, 'All other sessions have ended.');
  };
  return (
    <Row
      name={shownName}
      hint={
        <>
          Signs in as <span dir="auto">{subject}</span>, linked <RelativeTime at={createdAt} />
        </>
      }
    >
      <ProofButton
        button={<Button aria-label={`Unlink ${shownName}`}>Unlink</Button>}
        title={`Unlink ${shownName}?`}
        description="It no longer signs in to this account. All other sessions end."
        action="Unlink"
        danger
        onConfirm={unlink}
      />
    </Row>
  );
}
