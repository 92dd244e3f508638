import type { FilePage, StoredFile } from '@latchkey/client';
import { useMutation } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { type ReactNode, useState } from 'react';
import { latchkey } from '../../../api/client.ts';
import { Button, IconButton } from '../../../components/button.tsx';
import { ConfirmButton } from '../../../components/confirm-dialog.tsx';
import { ShortId } from '../../../components/copy-button.tsx';
import { Icon } from '../../../components/icon.tsx';
import { ErrorNotice } from '../../../components/notice.tsx';
import { RelativeTime } from '../../../components/relative-time.tsx';
import { SearchField } from '../../../components/search-field.tsx';
import { EmptyState } from '../../../components/states.tsx';
import { type Column, Pagination, Table } from '../../../components/table.tsx';
import { downloadUrl } from '../../../download/download.ts';
import { formatBytes } from '../../../format/bytes.ts';
import { classes } from '../../../styles/classes.ts';
import { toast } from '../../../toast/toasts.ts';
import { useAction } from '../../../toast/use-action.ts';
import { useApplicationId } from '../use-application-id.ts';
import styles from './files.module.css';
import { NameForm } from './name-form.tsx';

const route = getRouteApi('/signed-in/applications/$applicationId/files');

/** A page of the files, with their search. */
export function FileTable({ found: { files, totalPages }, button }: { readonly found: FilePage; readonly button: ReactNode }) {
  const { page = 1, search = '' } = route.useSearch();
  const navigate = route.useNavigate();
  const setSearch = (text: string) => navigate({ search: text === '' ? {} : { search: text }, replace: true });
  const setPage = (wanted: number) => navigate({ search: (all) => ({ ...all, page: wanted }) });
  return (
    <div>
      <div className={classes(styles.toolbar, 'between')}>
        <SearchField label="Search files" value={search} onSearch={setSearch} />
        {button}
      </div>
      {files.length > 0 && <Rows files={files} />}
      {files.length === 0 && totalPages === 0 && (
        <EmptyState icon="search" title="No file matches" action={<Button onClick={() => setSearch('')}>Clear search</Button>}>
          No name contains “{search}”.
        </EmptyState>
      )}
      <Pagination page={page} totalPages={totalPages} onPage={setPage} />
    </div>
  );
}

function Rows({ files }: { readonly files: readonly StoredFile[] }) {
  const [renamed, setRenamed] = useState<string>();
  const columns: ReadonlyArray<Column<StoredFile>> = [
    {
      label: 'Name',
      isName: true,
      cell: (file) => (file.id === renamed ? <Rename file={file} onClose={() => setRenamed(undefined)} /> : <Name file={file} />),
    },
    {
      label: 'Size',
      isSecondary: true,
      cell: ({ byteSize }) => <span title={`${byteSize.toLocaleString('en')} bytes`}>{formatBytes(byteSize)}</span>,
    },
    {
      label: 'SHA-256',
      cell: ({ checksum, displayName }) => <ShortId id={checksum} label={`Copy SHA-256 of ${displayName}`} />,
    },
    {
      label: 'Uploaded',
      isSecondary: true,
      cell: ({ createdAt }) => <RelativeTime at={createdAt} />,
      detail: ({ user }) => `by ${user.username}`,
    },
    { label: '', cell: (file) => <Actions file={file} onRename={() => setRenamed(file.id)} /> },
  ];
  return <Table caption="Files" columns={columns} items={files} />;
}

function Name({ file: { displayName, contentType, presignedUrlsCount: count } }: { readonly file: StoredFile }) {
  return (
    <span className={styles.name}>
      <Icon name="file" />
      <span className="lines">
        <span className="strong" dir="auto">
          {displayName}
        </span>
        <span className="muted small">
          {contentType === 'application/octet-stream' ? 'Binary' : contentType}
          {count > 0 && ` · ${count} download ${count === 1 ? 'link' : 'links'} created`}
        </span>
      </span>
    </span>
  );
}

function Actions({ file, onRename }: { readonly file: StoredFile; readonly onRename: () => void }) {
  const applicationId = useApplicationId();
  const { id, displayName } = file;
  const start = async () => downloadUrl(displayName, (await latchkey.files.createDownloadUrl(applicationId, id)).url);
  const download = useAction(start, `${displayName} was not downloaded`);
  return (
    <span className={styles.actions}>
      <IconButton
        small
        icon="download"
        label={`Download ${displayName}`}
        pending={download.isPending}
        onClick={() => download.mutate()}
      />
      <IconButton small icon="edit" label={`Rename ${displayName}`} onClick={onRename} />
      <ConfirmButton
        button={<IconButton small icon="trash" label={`Delete ${displayName}`} />}
        title={`Delete ${displayName}?`}
        action="Delete file"
        danger
        done={['File deleted', displayName]}
        onConfirm={() => latchkey.files.delete(applicationId, id)}
      >
        Its {formatBytes(file.byteSize)} are deleted, and its download links stop working. This cannot be undone.
      </ConfirmButton>
    </span>
  );
}

function Rename({ file, onClose }: { readonly file: StoredFile; readonly onClose: () => void }) {
  const applicationId = useApplicationId();
  const rename = useMutation({
    mutationFn: (name: string) => latchkey.files.rename(applicationId, file.id, name),
    onSuccess: (_result, name) => {
      toast.success('File renamed', `${file.displayName} is now ${name}`);
      onClose();
    },
  });
  const { error } = rename;
  return (
    <NameForm
      label={`New name of ${file.displayName}`}
      name={file.displayName}
      current={file.displayName}
      action="Rename"
      isPending={rename.isPending}
      error={error && <ErrorNotice error={error} />}
      takesFocus
      onSubmit={(name) => (name === file.displayName ? onClose() : rename.mutate(name))}
      onCancel={onClose}
    />
  );
}
