import type { Release, ReleaseArtifact } from '@latchkey/client';
import { artifactKey } from '@latchkey/contract/artifact';
import { YANK_REASON_MAX } from '@latchkey/contract/release';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { latchkey } from '../../../api/client.ts';
import { releasesQuery } from '../../../api/queries.ts';
import { Button, CreateButton } from '../../../components/button.tsx';
import { ConfirmButton } from '../../../components/confirm-dialog.tsx';
import { Dialog } from '../../../components/dialog.tsx';
import { TextField } from '../../../components/form.tsx';
import { Badge, Toolbar } from '../../../components/page.tsx';
import { RelativeTime } from '../../../components/relative-time.tsx';
import { EmptyState, QueryView } from '../../../components/states.tsx';
import { type Column, rowLink, Table } from '../../../components/table.tsx';
import { useApplicationId } from '../use-application-id.ts';
import { DraftForm } from './draft-form.tsx';
import styles from './releases.module.css';
import { UpdateSettings } from './update-settings.tsx';

const route = getRouteApi('/signed-in/applications/$applicationId/releases');

/** Value of the search parameter `release` while a draft is created. */
const NEW = 'new';

export function ReleasesPage() {
  const { release: shown } = route.useSearch();
  const query = releasesQuery(useApplicationId());
  const { data: releases } = useQuery(query);
  const navigate = route.useNavigate();
  const show = (release?: string) => navigate({ search: release === undefined ? {} : { release } });
  const createButton = <CreateButton onClick={() => show(NEW)}>Draft a release</CreateButton>;
  return (
    <>
      <QueryView query={query}>
        {(releases) =>
          releases.length === 0 ? (
            <EmptyState icon="upload" title="No releases yet" action={createButton}>
              A release offers uploaded files to the updaters of your application. CI publishes them with “latchkey release
              publish”.
            </EmptyState>
          ) : (
            <>
              <Toolbar>{createButton}</Toolbar>
              <Table caption="Releases" columns={COLUMNS} items={releases} />
            </>
          )
        }
      </QueryView>
      <UpdateSettings channels={releases?.map(({ channel }) => channel) ?? []} />
      <ReleaseDialog release={shown === NEW ? NEW : releases?.find(({ id }) => id === shown)} onClose={() => show()} />
    </>
  );
}

const STATES = { draft: ['neutral', 'Draft'], published: ['success', 'Published'], yanked: ['danger', 'Yanked'] } as const;

const COLUMNS: ReadonlyArray<Column<Release>> = [
  {
    label: 'Version',
    isName: true,
    cell: ({ id, version }) => (
      <Link to="." search={{ release: id }} className={rowLink}>
        {version}
      </Link>
    ),
  },
  { label: 'Channel', cell: ({ channel }) => channel },
  { label: 'State', cell: ({ status }) => <Badge kind={STATES[status][0]}>{STATES[status][1]}</Badge> },
  {
    label: 'Roll-out',
    cell: ({ status, rolloutPercent }) => (status === 'published' ? `${rolloutPercent} %` : '–'),
  },
  {
    label: 'Published',
    isSecondary: true,
    cell: ({ publishedAt }) => (publishedAt ? <RelativeTime at={publishedAt} /> : '–'),
  },
  {
    label: '',
    cell: (release) => (
      <span className="cluster">
        {ACTIONS[release.status].map((action) => (
          <ActionButton key={action.name} release={release} action={action} />
        ))}
      </span>
    ),
  },
];

/** A change of a release, after a confirmation. */
interface Action {
  readonly name: string;
  readonly done: string;
  readonly danger?: boolean;
  readonly consequence: string;
  readonly field?: (release: Release) => ReactNode;
  readonly run: (id: string, values: FormData) => Promise<unknown>;
}

const rolloutField = ({ rolloutPercent }: Release) => (
  <TextField
    name="rolloutPercent"
    label="Share of the clients, in percent"
    hint="0 to 100. Clients stay in as the share grows."
    type="number"
    min={0}
    max={100}
    defaultValue={rolloutPercent}
  />
);
const readRollout = (values: FormData) => Number.parseFloat(String(values.get('rolloutPercent')));

const ACTIONS: Readonly<Record<Release['status'], readonly Action[]>> = {
  draft: [
    {
      name: 'Publish',
      done: 'Release published',
      consequence: 'Updaters are offered it from now on. It can be yanked, but not be changed again.',
      field: rolloutField,
      run: (id, values) => latchkey.releases.publish(id, { rolloutPercent: readRollout(values) }),
    },
    {
      name: 'Delete',
      done: 'Draft deleted',
      danger: true,
      consequence: 'Its files stay.',
      run: (id) => latchkey.releases.delete(id),
    },
  ],
  published: [
    {
      name: 'Roll out',
      done: 'Roll-out changed',
      consequence: 'Clients that have updated keep the version.',
      field: rolloutField,
      run: (id, values) => latchkey.releases.setRollout(id, readRollout(values)),
    },
    {
      name: 'Yank',
      done: 'Release yanked',
      danger: true,
      consequence: 'Updaters are never offered it again, and its download links end. This cannot be undone.',
      field: () => <TextField name="reason" label="Reason" hint="For the audit log." maxLength={2 * YANK_REASON_MAX} />,
      run: (id, values) => latchkey.releases.yank(id, { reason: String(values.get('reason')) }),
    },
  ],
  yanked: [],
};

function ActionButton({ release, action }: { readonly release: Release; readonly action: Action }) {
  const { name, done, danger, consequence, field, run } = action;
  const label = `${name} ${release.version} of ${release.channel}`;
  return (
    <ConfirmButton
      button={
        <Button small aria-label={label}>
          {name}…
        </Button>
      }
      title={`${label}?`}
      action={`${name} release`}
      danger={danger}
      fields={field?.(release)}
      done={[done, release.version]}
      onConfirm={(values) => run(release.id, values)}
    >
      {consequence}
    </ConfirmButton>
  );
}

interface ReleaseDialogProps {
  readonly release: Release | typeof NEW | undefined;
  readonly onClose: () => void;
}

/** A draft to edit, or a release as it was published. */
function ReleaseDialog({ release, onClose }: ReleaseDialogProps) {
  const draft = release === NEW ? undefined : release;
  const isPublished = draft !== undefined && draft.status !== 'draft';
  return (
    <Dialog
      open={release !== undefined}
      onClose={onClose}
      stays={!isPublished}
      wide
      title={draft ? `${draft.version} of ${draft.channel}` : 'Draft a release'}
      description={isPublished ? undefined : 'Updaters are not offered it before you publish it.'}
    >
      {isPublished ? <Published release={draft} /> : <DraftForm key={draft?.id} draft={draft} onClose={onClose} />}
    </Dialog>
  );
}

function Published({ release: { notes, artifacts } }: { readonly release: Release }) {
  return (
    <div className="stack">
      {notes !== '' && (
        <p className={styles.text} dir="auto">
          {notes}
        </p>
      )}
      <Table caption="Files" columns={FILE_COLUMNS} items={artifacts.map((file) => ({ ...file, id: artifactKey(file) }))} />
    </div>
  );
}

const FILE_COLUMNS: ReadonlyArray<Column<ReleaseArtifact & { readonly id: string }>> = [
  { label: 'Name', isName: true, cell: ({ name }) => <span dir="auto">{name}</span> },
  { label: 'For', cell: ({ id }) => id },
  { label: 'Signature', cell: ({ signature }) => (signature === undefined ? 'None' : 'Signed') },
];
