import type { NewTrustedIssuer, TrustedIssuer } from '@latchkey/client';
import { describeLength, KEY_NAME } from '@latchkey/contract/lengths';
import { useState } from 'react';
import { latchkey } from '../../api/client.ts';
import { serverUrl } from '../../api/settings.ts';
import { Form, InputError, SelectField, TextField } from '../../components/form.tsx';
import { readProof, SecondFactorField } from '../../session/owner-proof.tsx';
import { ApplicationChoice, readRights, Scopes } from '../api-keys/key-fields.tsx';
import { TEMPLATES, type Template } from './templates.ts';

interface TrustFormProps {
  readonly onCancel: () => void;
  readonly onCreated: (trusted: TrustedIssuer) => void;
}

export function TrustForm({ onCancel, onCreated }: TrustFormProps) {
  const [template, setTemplate] = useState(TEMPLATES[0] as Template);
  const create = (values: FormData) => latchkey.trustedIssuers.create(readIssuer(template, values));
  return (
    <Form onSubmit={create} onDone={onCreated} action="Trust issuer" onCancel={onCancel}>
      <SelectField
        name="template"
        label="Where the jobs run"
        value={template.label}
        onChange={({ currentTarget: { value } }) => setTemplate(TEMPLATES.find(({ label }) => label === value) as Template)}
        options={TEMPLATES.map(({ label }) => [label, label])}
      />
      <TemplateFields key={template.label} template={template} />
      <Scopes chosen={['files:read', 'files:upload', 'releases:write']} />
      <ApplicationChoice />
      <SelectField
        name="lifetimeSeconds"
        label="A key expires after"
        defaultValue="600"
        options={[1, 5, 10, 15].map((minutes) => [minutes * 60, minutes === 1 ? '1 minute' : `${minutes} minutes`])}
      />
      <SecondFactorField />
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
      {fields.map((field) => (
        <TextField key={field.name} {...field} />
      ))}
      <TextField name="audience" label="Audience" hint="The aud of the tokens." defaultValue={serverUrl} />
    </>
  );
}

/** @throws InputError */
function readIssuer({ issuer, fields, toClaims }: Template, values: FormData): NewTrustedIssuer {
  const text = (name: string) => String(values.get(name) ?? '').trim();
  const needed = [...fields.filter(({ rows }) => rows === undefined).map(({ name }) => name), 'audience'];
  const missing = needed.filter((name) => text(name) === '');
  if (missing.length > 0) throw new InputError(Object.fromEntries(missing.map((name) => [name, 'Enter it.'])));
  const { scopes, allApplications, applicationIds = [] } = readRights(values);
  return {
    name: text('name'),
    issuer: issuer ?? text('issuer'),
    audience: text('audience'),
    claims: toClaims(text),
    scopes,
    ...(allApplications ? { allApplications } : { applicationIds }),
    lifetimeSeconds: Number(text('lifetimeSeconds')),
    ...(text('jwks') !== '' && { jwks: readJwks(text('jwks')) }),
    ...readProof(values),
  };
}

function readJwks(text: string): NonNullable<NewTrustedIssuer['jwks']> {
  try {
    return JSON.parse(text);
  } catch {
    throw new InputError({ jwks: 'Must be JSON.' });
  }
}
