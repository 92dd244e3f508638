import type { ApiKey, Application, NewApiKey, Scope } from '@latchkey/client';
import { describeLength, KEY_NAME } from '@latchkey/contract/lengths';
import { useState } from 'react';
import { applicationsQuery } from '../../api/queries.ts';
import { Choice, ChoiceSet } from '../../components/choice.tsx';
import { InputError, SelectField, TextField } from '../../components/form.tsx';
import { formatExact } from '../../components/relative-time.tsx';
import { SearchField } from '../../components/search-field.tsx';
import { QueryView } from '../../components/states.tsx';
import styles from './api-keys.module.css';
import { SCOPE_GROUPS } from './scopes.tsx';

const DAY_MS = 86_400_000;

/** Name, scopes, applications and expiry of a key: {@link readKey} reads them. */
export function KeyFields({ apiKey }: { readonly apiKey?: ApiKey }) {
  return (
    <>
      <TextField
        name="name"
        label="Name"
        // The form of a key appears after its dialog.
        autoFocus={apiKey !== undefined}
        hint={`${describeLength(KEY_NAME)}: what uses the key, such as “Release pipeline”.`}
        defaultValue={apiKey?.name}
        maxLength={2 * KEY_NAME.max}
      />
      <Scopes chosen={apiKey?.scopes ?? []} />
      <ApplicationChoice apiKey={apiKey} />
      <Expiry apiKey={apiKey} />
    </>
  );
}

/** @throws InputError for what the service would reject without the name of an input */
export function readKey(values: FormData, apiKey?: ApiKey): NewApiKey {
  const text = (name: string) => String(values.get(name) ?? '');
  const expiresAt = readExpiry(text('expiry'), text('expiresOn'), apiKey);
  if (text('expiry') === 'date' && !(Date.parse(expiresAt ?? '') > Date.now()))
    throw new InputError({ expiresOn: 'Choose a day from today on.' });
  return { name: text('name'), ...readRights(values), expiresAt };
}

/** @throws InputError if nothing is chosen */
export function readRights(values: FormData): Pick<NewApiKey, 'scopes' | 'allApplications' | 'applicationIds'> {
  const scopes = values.getAll('scopes') as Scope[];
  const allApplications = values.get('access') === 'all';
  const applicationIds = allApplications ? [] : values.getAll('applicationIds').map(String);
  if (scopes.length === 0) throw new InputError({ scopes: 'Choose at least one.' });
  if (!allApplications && applicationIds.length === 0)
    throw new InputError({ applicationIds: 'Choose at least one application, or all of them.' });
  return { scopes, allApplications, applicationIds };
}

function readExpiry(expiry: string, date: string, apiKey: ApiKey | undefined): string | null {
  if (expiry === 'keep') return apiKey?.expiresAt ?? null;
  if (expiry === 'never') return null;
  if (expiry !== 'date') return new Date(Date.now() + Number(expiry) * DAY_MS).toISOString();
  // In the time zone of the browser.
  const end = new Date(`${date}T23:59:59`);
  return Number.isNaN(end.getTime()) ? '' : end.toISOString();
}

export function Scopes({ chosen }: { readonly chosen: readonly Scope[] }) {
  return (
    <ChoiceSet name="scopes" legend="What it may do">
      {(isInvalid) => (
        <div className="stack">
          {SCOPE_GROUPS.map(({ name, scopes }) => (
            <div key={name}>
              <p className={styles.group}>{name}</p>
              <div className={styles.scopes}>
                {scopes.map(({ scope, name: label, meaning }) => (
                  <Choice
                    key={scope}
                    name="scopes"
                    value={scope}
                    label={label}
                    hint={meaning}
                    defaultChecked={chosen.includes(scope)}
                    aria-invalid={isInvalid}
                  />
                ))}
              </div>
            </div>
          ))}
        </div>
      )}
    </ChoiceSet>
  );
}

export function ApplicationChoice({ apiKey }: { readonly apiKey?: ApiKey | undefined }) {
  const [access, setAccess] = useState(apiKey?.allApplications === false ? 'chosen' : 'all');
  return (
    <ChoiceSet name="applicationIds" legend="Applications">
      {(isInvalid) => (
        <>
          {(['all', 'chosen'] as const).map((value) => (
            <Choice
              key={value}
              type="radio"
              name="access"
              value={value}
              checked={access === value}
              onChange={() => setAccess(value)}
              label={value === 'all' ? 'All applications, also later ones' : 'Chosen applications'}
              aria-invalid={isInvalid && value === access}
            />
          ))}
          {access === 'chosen' && (
            <QueryView query={applicationsQuery}>
              {(applications) => <ApplicationChoices applications={applications} chosen={apiKey?.applicationIds ?? []} />}
            </QueryView>
          )}
        </>
      )}
    </ChoiceSet>
  );
}

const SEARCHABLE = 8;

function ApplicationChoices({ applications, chosen }: { readonly applications: Application[]; readonly chosen: string[] }) {
  const [search, setSearch] = useState('');
  const wanted = search.trim().toLowerCase();
  if (applications.length === 0) return <p className="muted">There are no applications yet.</p>;
  return (
    <>
      {applications.length > SEARCHABLE && <SearchField label="Search applications" value={search} onSearch={setSearch} />}
      <div className={styles.applications}>
        {applications.map(({ id, name }) => (
          // Hidden ones stay chosen.
          <div key={id} hidden={!name.toLowerCase().includes(wanted)}>
            <Choice name="applicationIds" value={id} label={name} defaultChecked={chosen.includes(id)} />
          </div>
        ))}
      </div>
    </>
  );
}

function Expiry({ apiKey }: { readonly apiKey: ApiKey | undefined }) {
  const isLimited = apiKey !== undefined && apiKey.expiresAt !== null;
  const [expiry, setExpiry] = useState(apiKey === undefined ? '90' : isLimited ? 'keep' : 'never');
  return (
    <>
      <SelectField
        name="expiry"
        label="Expires"
        hint="An expired key is rejected. Set an expiry date on keys that people use."
        value={expiry}
        onChange={(event) => setExpiry(event.currentTarget.value)}
      >
        {isLimited && <option value="keep">As now: {formatExact(apiKey.expiresAt ?? '')}</option>}
        <option value="30">In 30 days</option>
        <option value="90">In 90 days</option>
        <option value="365">In a year</option>
        <option value="date">On a day…</option>
        <option value="never">Never</option>
      </SelectField>
      {expiry === 'date' && <TextField name="expiresOn" label="Last day" type="date" />}
    </>
  );
}
