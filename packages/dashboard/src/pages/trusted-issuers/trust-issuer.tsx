import type { NewTrustedIssuer, Scope, TrustedIssuer } from '@latchkey/client';
import { describeLength, KEY_NAME } from '@latchkey/contract/lengths';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { latchkey } from '../../api/client.ts';
import { serverUrl } from '../../api/settings.ts';
import { Dialog } from '../../components/dialog.tsx';
import { Form } from '../../components/form.tsx';
import { SelectField } from '../../components/select-field.tsx';
import { CodeField, Field, TextField } from '../../components/text-field.tsx';
import { useAccount } from '../../session/session.ts';
import { ApplicationChoice, Scopes } from '../api-keys/key-form.tsx';
import { trustedIssuersQuery } from './queries.ts';
import { TEMPLATES, type Template } from './templates.ts';

interface TrustIssuerProps {
  readonly open: boolean;
  readonly onClose: () => void;
  readonly onCreated: (trusted: TrustedIssuer) => void;
}

export function TrustIssuerDialog({ open, onClose, onCreated }: TrustIssuerProps) {
  return (
    <Dialog
      open={open}
      onClose={onClose}
      stays
      wide
      title="Trust an issuer"
      description="Jobs whose token has these claims get a key that expires soon. No key is stored at the CI server."
    >
      <TrustForm onCancel={onClose} onCreated={onCreated} />
    </Dialog>
  );
}

function TrustForm({ onCancel, onCreated }: { readonly onCancel: () => void } & Pick<TrustIssuerProps, 'onCreated'>) {
  const [template, setTemplate] = useState(TEMPLATES[0] as Template);
  const [messages, setMessages] = useState<Readonly<Record<string, string>>>();
  const { twoFactorEnabled } = useAccount();
  const queryClient = useQueryClient();
  const creation = useMutation({
    mutationFn: (trusted: NewTrustedIssuer) => latchkey.trustedIssuers.create(trusted),
    onSuccess: async (trusted) => {
      await queryClient.invalidateQueries({ queryKey: trustedIssuersQuery.queryKey });
      onCreated(trusted);
    },
  });
  const submit = (values: FormData) => {
    const found = findProblems(template, values);
    setMessages(found);
    if (!found) creation.mutate(readIssuer(template, values));
  };
  return (
    <Form
      onSubmit={submit}
      onInput={() => setMessages(undefined)}
      error={messages === undefined ? creation.error : null}
      messages={messages}
      action="Trust issuer"
      pending={creation.isPending}
      onCancel={onCancel}
    >
      <SelectField
        name="template"
        label="Where the jobs run"
        value={template.id}
        onChange={({ currentTarget: { value } }) => setTemplate(TEMPLATES.find(({ id }) => id === value) as Template)}
      >
        {TEMPLATES.map(({ id, label }) => (
          <option key={id} value={id}>
            {label}
          </option>
        ))}
      </SelectField>
      <TemplateFields key={template.id} template={template} />
      <Scopes chosen={['files:read', 'files:upload', 'releases:write']} />
      <ApplicationChoice />
      <SelectField name="lifetimeSeconds" label="A key expires after" defaultValue="600">
        {[1, 5, 10, 15].map((minutes) => (
          <option key={minutes} value={minutes * 60}>
            {minutes === 1 ? '1 minute' : `${minutes} minutes`}
          </option>
        ))}
      </SelectField>
      {twoFactorEnabled && <CodeField hint="From your authenticator app, or a recovery code." />}
    </Form>
  );
}

function TemplateFields({ template: { label, fields } }: { readonly template: Template }) {
  return (
    <>
      <TextField
        name="name"
        label="Name"
        hint={`${describeLength(KEY_NAME)}. Its keys have this name too.`}
        defaultValue={label}
        maxLength={2 * KEY_NAME.max}
      />
      {fields.map(({ name, label: fieldLabel, hint, value, isLong }) =>
        isLong ? (
          <Field key={name} name={name} label={fieldLabel} hint={hint}>
            {({ onInput, ...attributes }) => <textarea rows={3} spellCheck={false} {...attributes} />}
          </Field>
        ) : (
          <TextField key={name} name={name} label={fieldLabel} hint={hint} defaultValue={value} />
        ),
      )}
      <TextField name="audience" label="Audience" hint="The aud of the tokens." defaultValue={serverUrl} />
    </>
  );
}

const textOf = (values: FormData) => (name: string) => String(values.get(name) ?? '').trim();

function findProblems({ fields }: Template, values: FormData): Readonly<Record<string, string>> | undefined {
  const text = textOf(values);
  const missing = [...fields.filter(({ isLong }) => !isLong).map(({ name }) => name), 'audience'].filter(
    (name) => text(name) === '',
  );
  const problems: Record<string, string> = Object.fromEntries(missing.map((name) => [name, 'Enter it.']));
  if (values.getAll('scopes').length === 0) problems.scopes = 'Choose at least one.';
  if (text('access') !== 'all' && values.getAll('applicationIds').length === 0)
    problems.applicationIds = 'Choose at least one application, or all of them.';
  if (text('jwks') !== '' && readJson(text('jwks')) === undefined) problems.jwks = 'Must be JSON.';
  return Object.keys(problems).length > 0 ? problems : undefined;
}

function readJson(text: string): NewTrustedIssuer['jwks'] {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function readIssuer({ issuer, toClaims }: Template, values: FormData): NewTrustedIssuer {
  const text = textOf(values);
  const [jwks, code] = [readJson(text('jwks')), text('code')];
  return {
    name: text('name'),
    issuer: issuer ?? text('issuer'),
    audience: text('audience'),
    claims: toClaims(text),
    scopes: values.getAll('scopes') as Scope[],
    ...(text('access') === 'all' ? { allApplications: true } : { applicationIds: values.getAll('applicationIds').map(String) }),
    lifetimeSeconds: Number(text('lifetimeSeconds')),
    ...(jwks && { jwks }),
    ...(code !== '' && { code }),
  };
}
