import type { NewRelease, Release, ReleaseArtifact } from '@latchkey/client';
import { ARTIFACT_NAME, ARTIFACTS_MAX } from '@latchkey/contract/artifact';
import { guessArtifact } from '@latchkey/contract/guess-artifact';
import { CHANNEL_RULE, RELEASE_NOTES_MAX, STABLE_CHANNEL } from '@latchkey/contract/release';
import { useMutation, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { latchkey } from '../../../api/client.ts';
import { filesQuery } from '../../../api/queries.ts';
import { Button, IconButton } from '../../../components/button.tsx';
import { Field, Form, SelectField, TextField } from '../../../components/form.tsx';
import { SearchField } from '../../../components/search-field.tsx';
import { toast } from '../../../toast/toasts.ts';
import styles from './releases.module.css';

interface DraftFormProps {
  readonly applicationId: string;
  /** Undefined for a new one. */
  readonly draft: Release | undefined;
  readonly onClose: () => void;
}

const SUGGESTIONS = { platforms: ['windows', 'darwin', 'linux'], architectures: ['x86_64', 'aarch64', 'universal'] };

/** An artifact with a key that stays when others are removed. */
type KeyedArtifact = ReleaseArtifact & { readonly key: number };

let lastKey = 0;
const withKey = (artifact: ReleaseArtifact): KeyedArtifact => ({ ...artifact, key: ++lastKey });

export function DraftForm({ applicationId, draft: saved, onClose }: DraftFormProps) {
  // The draft that the form began with: CI may change it meanwhile.
  const [draft] = useState(saved);
  const [artifacts, setArtifacts] = useState(() => (draft?.artifacts ?? []).map(withKey));
  const save = useMutation({
    mutationFn: async (values: FormData) => {
      const release = readRelease(values, artifacts);
      if (!draft) return latchkey.releases.create(applicationId, release);
      const changes = findChanges(draft, release);
      return Object.keys(changes).length === 0 ? draft : latchkey.releases.update(draft.id, changes);
    },
    onSuccess: ({ version }) => {
      toast.success('Draft saved', version);
      onClose();
    },
  });
  return (
    <Form submission={save} action="Save draft" onCancel={onClose}>
      <div className={styles.inputs}>
        <TextField name="version" label="Version" hint="A Semantic Version, such as 1.4.0." defaultValue={draft?.version} />
        <TextField
          name="channel"
          label="Channel"
          hint={`${CHANNEL_RULE.replace('must be ', '')}, such as beta.`}
          defaultValue={draft?.channel ?? STABLE_CHANNEL}
        />
      </div>
      <Field name="notes" label="Notes for users">
        {({ onInput, ...attributes }) => (
          <textarea rows={4} dir="auto" maxLength={2 * RELEASE_NOTES_MAX} defaultValue={draft?.notes} {...attributes} />
        )}
      </Field>
      {artifacts.map((artifact) => (
        <Artifact
          key={artifact.key}
          artifact={artifact}
          onRemove={() => setArtifacts(artifacts.filter(({ key }) => key !== artifact.key))}
        />
      ))}
      {Object.entries(SUGGESTIONS).map(([id, values]) => (
        <datalist key={id} id={id}>
          {values.map((value) => (
            <option key={value} value={value} />
          ))}
        </datalist>
      ))}
      {artifacts.length < ARTIFACTS_MAX && (
        <AddFile applicationId={applicationId} onAdd={(artifact) => setArtifacts([...artifacts, withKey(artifact)])} />
      )}
    </Form>
  );
}

interface ArtifactProps {
  readonly artifact: ReleaseArtifact;
  readonly onRemove: () => void;
}

/** Inputs of one file. Those of all files have the same names, in the order of the files. */
function Artifact({ artifact: { name, platform, arch, kind, signature }, onRemove }: ArtifactProps) {
  return (
    <fieldset className={styles.artifact}>
      <legend dir="auto">{name}</legend>
      <div className={styles.line}>
        <TextField name="name" label="Name for users" defaultValue={name} maxLength={2 * ARTIFACT_NAME.max} dir="auto" />
        <IconButton icon="trash" label={`Remove ${name}`} onClick={onRemove} />
      </div>
      <div className={styles.inputs}>
        <TextField name="platform" label="Platform" defaultValue={platform} list="platforms" />
        <TextField name="arch" label="Architecture" defaultValue={arch} list="architectures" />
        <TextField name="kind" label="Kind" hint="One file for each platform, architecture and kind." defaultValue={kind} />
        <Field name="signature" label="Signature" hint="Of minisign, or of Sparkle’s sign_update.">
          {({ onInput, ...attributes }) => <textarea rows={2} spellCheck={false} defaultValue={signature} {...attributes} />}
        </Field>
      </div>
    </fieldset>
  );
}

interface AddFileProps {
  readonly applicationId: string;
  readonly onAdd: (artifact: ReleaseArtifact) => void;
}

/** Uploaded files to choose from: the newest, or those that a search finds. */
function AddFile({ applicationId, onAdd }: AddFileProps) {
  const [search, setSearch] = useState('');
  const [chosen, setChosen] = useState('');
  const { data } = useQuery(filesQuery(applicationId, 1, search));
  const files = data?.files ?? [];
  const file = files.find(({ id }) => id === chosen) ?? files[0];
  const add = () => {
    if (!file) return;
    const { id: fileId, displayName: name } = file;
    onAdd({ fileId, name, ...(guessArtifact(name) ?? { platform: '', arch: 'x86_64', kind: 'program' }) });
  };
  return (
    <fieldset className={styles.artifact}>
      <legend>Uploaded files</legend>
      <SearchField label="Search files" value={search} onSearch={setSearch} />
      <div className={styles.line}>
        <SelectField
          name="file"
          label="File"
          value={file?.id ?? ''}
          onChange={({ currentTarget }) => setChosen(currentTarget.value)}
        >
          {files.length === 0 && <option value="">{data ? 'No file' : 'Loading…'}</option>}
          {files.map(({ id, displayName }) => (
            <option key={id} value={id}>
              {displayName}
            </option>
          ))}
        </SelectField>
        <Button icon="plus" disabled={!file} onClick={add}>
          Add file
        </Button>
      </div>
    </fieldset>
  );
}

function readRelease(values: FormData, artifacts: readonly KeyedArtifact[]): NewRelease & Pick<Release, 'artifacts'> {
  const textAt = (name: string, index = 0) => String(values.getAll(name)[index] ?? '').trim();
  return {
    version: textAt('version'),
    channel: textAt('channel'),
    notes: textAt('notes'),
    artifacts: artifacts.map(({ fileId }, index) => {
      const [name = '', platform = '', arch = '', kind = ''] = ['name', 'platform', 'arch', 'kind'].map((field) =>
        textAt(field, index),
      );
      const signature = textAt('signature', index);
      return { fileId, name, platform, arch, kind, ...(signature !== '' && { signature }) };
    }),
  };
}

/** The properties that differ. Others that CI changed meanwhile stay as they are. */
const findChanges = (draft: Release, release: NewRelease) =>
  Object.fromEntries(
    Object.entries(release).filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(draft[name as keyof Release])),
  );
