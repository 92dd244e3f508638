import type { TrustedIssuer } from '@latchkey/client';
import type { ComponentProps } from 'react';
import { serverUrl } from '../../api/settings.ts';
import type { TextField } from '../../components/form.tsx';

/** Properties of an input. One of several lines may stay empty. */
type TemplateField = Pick<ComponentProps<typeof TextField>, 'name' | 'label' | 'hint' | 'defaultValue' | 'rows'>;

export interface Template {
  /** Name of the CI server, and first name of the trusted issuer. */
  readonly label: string;
  /** The inputs that identify its jobs; without an input `issuer`, its only issuer. */
  readonly fields: readonly TemplateField[];
  readonly issuer?: string;
  /** True for a trusted issuer that was probably made with it. */
  readonly isOf: (trusted: TrustedIssuer) => boolean;
  readonly toClaims: (text: (name: string) => string) => Readonly<Record<string, string>>;
  /** Configuration of a job, without any secret. */
  readonly toJob: (trusted: TrustedIssuer) => string;
}

const KEYS: TemplateField = {
  name: 'jwks',
  label: 'Public keys (JWKS)',
  hint: 'Only for an issuer that Latchkey cannot reach, such as a cluster in a private network.',
  rows: 3,
};

export const TEMPLATES: readonly Template[] = [
  {
    label: 'GitHub Actions',
    issuer: 'https://token.actions.githubusercontent.com',
    fields: [
      { name: 'repository', label: 'Repository', hint: 'Owner and name, such as acme/editor.' },
      {
        name: 'environment',
        label: 'Environment',
        hint: 'Protect it in the settings of the repository: everybody who can push a branch can run jobs.',
        defaultValue: 'production',
      },
    ],
    isOf: ({ issuer }) => issuer.startsWith('https://token.actions.githubusercontent.com'),
    toClaims: (text) => ({ repository: text('repository'), environment: text('environment') }),
    toJob: ({ id, audience, claims }) => `permissions:
  contents: read
  id-token: write
jobs:
  release:
    runs-on: ubuntu-24.04
    environment: ${claims.environment ?? 'production'}
    env:
      LATCHKEY_URL: ${serverUrl}
      LATCHKEY_TRUSTED_ISSUER: ${id}${audience === serverUrl ? '' : `\n      LATCHKEY_AUDIENCE: ${audience}`}
    steps:
      - run: latchkey files upload dist/* --app "$APP"`,
  },
  {
    label: 'GitLab',
    fields: [
      { name: 'issuer', label: 'GitLab server', defaultValue: 'https://gitlab.com' },
      { name: 'project', label: 'Project', hint: 'Group and name, such as acme/editor.' },
      { name: 'branch', label: 'Protected branch', defaultValue: 'main' },
    ],
    isOf: ({ claims }) => 'project_path' in claims,
    toClaims: (text) => ({ project_path: text('project'), ref: text('branch'), ref_protected: 'true' }),
    toJob: ({ id, audience }) => `upload:
  id_tokens:
    LATCHKEY_ID_TOKEN:
      aud: ${audience}
  variables:
    LATCHKEY_URL: ${serverUrl}
    LATCHKEY_TRUSTED_ISSUER: ${id}
  script:
    - latchkey files upload dist/* --app "$APP"`,
  },
  {
    label: 'Kubernetes',
    fields: [
      { name: 'issuer', label: 'Issuer', hint: 'kubectl get --raw /.well-known/openid-configuration prints it.' },
      { name: 'namespace', label: 'Namespace' },
      { name: 'serviceAccount', label: 'Service account' },
      { ...KEYS, hint: `${KEYS.hint} kubectl get --raw /openid/v1/jwks prints them.` },
    ],
    isOf: ({ claims }) => String(claims.sub).startsWith('system:serviceaccount:'),
    toClaims: (text) => ({ sub: `system:serviceaccount:${text('namespace')}:${text('serviceAccount')}` }),
    toJob: ({ id, audience, claims }) => `serviceAccountName: ${String(claims.sub).split(':').at(-1)}
containers:
  - name: publish
    env:
      - { name: LATCHKEY_URL, value: ${serverUrl} }
      - { name: LATCHKEY_TRUSTED_ISSUER, value: ${id} }
    volumeMounts:
      - { name: latchkey, mountPath: /var/run/secrets/latchkey, readOnly: true }
volumes:
  - name: latchkey
    projected:
      sources:
        - serviceAccountToken: { audience: ${audience}, expirationSeconds: 600, path: token }`,
  },
  {
    label: 'Another issuer',
    fields: [
      { name: 'issuer', label: 'Issuer', hint: 'The iss of its tokens, an https URL.' },
      {
        name: 'claims',
        label: 'Claims',
        hint: 'A name=value per line. A token must have each, with exactly this text.',
        rows: 3,
      },
      KEYS,
    ],
    isOf: () => true,
    toClaims: (text) => readLines(text('claims')),
    toJob: ({ id }) => `LATCHKEY_URL=${serverUrl}
LATCHKEY_TRUSTED_ISSUER=${id}
LATCHKEY_ID_TOKEN=…`,
  },
];

function readLines(text: string): Record<string, string> {
  const lines = text.split('\n').filter((line) => line.includes('='));
  return Object.fromEntries(lines.map((line) => [line.split('=', 1)[0]?.trim(), line.slice(line.indexOf('=') + 1).trim()]));
}
