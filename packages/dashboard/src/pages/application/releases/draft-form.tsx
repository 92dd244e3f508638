import type { NewRelease, Release, ReleaseArtifact } from '@latchkey/client';
import { ARTIFACT_NAME, ARTIFACTS_MAX } from '@latchkey/contract/artifact';
import { guessArtifact } from '@latchkey/contract/guess-artifact';
import { CHANNEL_RULE, RELEASE_NOTES_MAX, STABLE_CHANNEL } from '@latchkey/contract/release';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { latchkey } from '../../../api/client.ts';
import { filesQuery } from '../../../api/queries.ts';
import { Button } from '../../../components/button.tsx';
import { Form, TextField } from '../../../components/form.tsx';
import { SearchField } from '../../../components/search-field.tsx';
import { classes } from '../../../styles/classes.ts';
import { toast } from '../../../toast/toasts.ts';
import { useApplicationId } from '../use-application-id.ts';
import styles from './releases.module.css';

interface DraftFormProps {
  /** Undefined for a new one. */
  readonly draft: Release | undefined;
  readonly onClose: () => void;
}

const SUGGESTIONS = { platforms: ['windows', 'darwin', 'linux'], architectures: ['x86_64', 'aarch64', 'universal'] };

export function DraftForm({ draft: saved, onClose }: DraftFormProps) {
  const applicationId = useApplicationId();
  // The draft that the form began with: CI may change it meanwhile.
  const [draft] = useState(saved);
  // One that is removed leaves a gap, so that the inputs of the others stay theirs.
  const [added, setAdded] = useState<ReadonlyArray<ReleaseArtifact | undefined>>(draft?.artifacts ?? []);
  const artifacts = added.filter((artifact) => artifact !== undefined);
  const save = (values: FormData) => {
    const release = readRelease(values, artifacts);
    if (!draft) return latchkey.releases.create(applicationId, release);
    const changes = findChanges(draft, release);
    return Object.keys(changes).length === 0 ? draft : latchkey.releases.update(draft.id, changes);
  };
  const finish = ({ version }: Release) => {
    toast.success('Draft saved', version);
    onClose();
  };
  return (
    <Form onSubmit={save} onDone={finish} action="Save draft" onCancel={onClose}>
      <div className={classes(styles.inputs, 'stack')}>
        <TextField name="version" label="Version" hint="A Semantic Version, such as 1.4.0." defaultValue={draft?.version} />
        <TextField
          name="channel"
          label="Channel"
          hint={`${CHANNEL_RULE.replace('must be ', '')}, such as beta.`}
          defaultValue={draft?.channel ?? STABLE_CHANNEL}
        />
      </div>
      <TextField
        name="notes"
        label="Notes for users"
        rows={4}
        spellCheck
        dir="auto"
        maxLength={2 * RELEASE_NOTES_MAX}
        defaultValue={draft?.notes}
      />
      {added.map(
        (artifact, index) =>
          artifact && <Artifact key={index} artifact={artifact} onRemove={() => setAdded(added.with(index, undefined))} />,
      )}
      {Object.entries(SUGGESTIONS).map(([id, values]) => (
        <datalist key={id} id={id}>
          {values.map((value) => (
            <option key={value} value={value} />
          ))}
        </datalist>
      ))}
      {artifacts.length < ARTIFACTS_MAX && <UploadedFiles onAdd={(artifact) => setAdded([...added, artifact])} />}
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
    <fieldset className={classes(styles.artifact, 'frame stack')}>
      <legend className={classes(styles.text, 'strong')} dir="auto">
        {name}
      </legend>
      <div className={classes(styles.inputs, 'stack')}>
        <TextField name="name" label="Name for users" defaultValue={name} maxLength={2 * ARTIFACT_NAME.max} dir="auto" />
        <TextField name="platform" label="Platform" defaultValue={platform} list="platforms" />
        <TextField name="arch" label="Architecture" defaultValue={arch} list="architectures" />
        <TextField name="kind" label="Kind" hint="One file for each platform, architecture and kind." defaultValue={kind} />
        <TextField
          name="signature"
          label="Signature"
          hint="Of minisign, or of Sparkle’s sign_update."
          rows={2}
          defaultValue={signature}
        />
      </div>
      <div className="cluster end">
        <Button small icon="trash" aria-label={`Remove ${name}`} onClick={onRemove}>
          Remove
        </Button>
      </div>
    </fieldset>
  );
}

/** Uploaded files to add: the newest, or those that a search finds. */
function UploadedFiles({ onAdd }: { readonly onAdd: (artifact: ReleaseArtifact) => void }) {
  const [search, setSearch] = useState('');
  const { data } = useQuery(filesQuery(useApplicationId(), 1, search));
  const add = (fileId: string, name: string) =>
    onAdd({ fileId, name, ...(guessArtifact(name) ?? { platform: '', arch: 'x86_64', kind: 'program' }) });
  return (
    <fieldset className={classes(styles.artifact, 'frame stack')}>
      <legend className="strong">Uploaded files</legend>
      <SearchField label="Search files" value={search} onSearch={setSearch} />
      <div className="cluster">
        {data?.files.length === 0 && <span className="muted">No file</span>}
        {data?.files.map(({ id, displayName }) => (
          <Button key={id} small icon="plus" aria-label={`Add ${displayName}`} onClick={() => add(id, displayName)}>
            <span className={styles.text} dir="auto">
              {displayName}
            </span>
          </Button>
        ))}
      </div>
    </fieldset>
  );
}

function readRelease(values: FormData, artifacts: readonly ReleaseArtifact[]): NewRelease & Pick<Release, 'artifacts'> {
  const textAt = (name: string, index = 0) => String(values.getAll(name)[index] ?? '').trim();
  return {
    version: textAt('version'),
    channel: textAt('channel'),
    notes: textAt('notes'),
    artifacts: artifacts.map(({ fileId }, index) => ({
      fileId,
      name: textAt('name', index),
      platform: textAt('platform', index),
      arch: textAt('arch', index),
      kind: textAt('kind', index),
      ...(textAt('signature', index) !== '' && { signature: textAt('signature', index) }),
    })),
  };
}

/** The properties that differ. Others that CI changed meanwhile stay as they are. */
const findChanges = (draft: Release, release: NewRelease) =>
  Object.fromEntries(
    Object.entries(release).filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(draft[name as keyof Release])),
  );
