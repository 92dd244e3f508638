import { LatchkeyError, type StoredFile } from '@latchkey/client';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { latchkey } from '../../../api/client.ts';
import { IconButton } from '../../../components/button.tsx';
import { ConfirmButton } from '../../../components/confirm-dialog.tsx';
import { Icon } from '../../../components/icon.tsx';
import { ErrorNotice } from '../../../components/notice.tsx';
import { RelativeTime } from '../../../components/relative-time.tsx';
import { ShortId } from '../../../components/short-id.tsx';
import { secondaryCell, Table } from '../../../components/table.tsx';
import { downloadUrl } from '../../../download/download.ts';
import { formatBytes } from '../../../format/bytes.ts';
import { toast } from '../../../toast/toasts.ts';
import styles from './files.module.css';
import { NameForm } from './name-form.tsx';
import { invalidateFiles } from './queries.ts';

interface FileTableProps {
  readonly applicationId: string;
  readonly files: readonly StoredFile[];
}

export function FileTable({ applicationId, files }: FileTableProps) {
  return (
    <Table caption="Files" columns={['Name', 'Size', 'SHA-256', 'Uploaded', '']}>
      {files.map((file) => (
        <Row key={file.id} applicationId={applicationId} file={file} />
      ))}
    </Table>
  );
}

interface RowProps {
  readonly applicationId: string;
  readonly file: StoredFile;
}

function Row({ applicationId, file }: RowProps) {
  const { displayName, byteSize, contentType, checksum, createdAt, user } = file;
  const [isRenaming, setRenaming] = useState(false);
  return (
    <tr>
      <td>
        {isRenaming ? (
          <Rename applicationId={applicationId} file={file} onClose={() => setRenaming(false)} />
        ) : (
          <span className={styles.name}>
            <Icon name="file" />
            <span>
              <span dir="auto">{displayName}</span>
              <span className={styles.type}>{describe(contentType, file.presignedUrlsCount)}</span>
            </span>
          </span>
        )}
      </td>
      <td data-label="Size" className={secondaryCell} title={`${byteSize.toLocaleString('en')} bytes`}>
        {formatBytes(byteSize)}
      </td>
      <td data-label="SHA-256">
        <ShortId id={checksum} label={`Copy SHA-256 of ${displayName}`} />
      </td>
      <td data-label="Uploaded" className={secondaryCell}>
        <span>
          <RelativeTime at={createdAt} />
          <span className={styles.type}>by {user.username}</span>
        </span>
      </td>
      <td>
        <RowActions applicationId={applicationId} file={file} onRename={() => setRenaming(true)} />
      </td>
    </tr>
  );
}

function describe(contentType: string, downloads: number): string {
  const type = contentType === 'application/octet-stream' ? 'Binary' : contentType;
  return downloads === 0 ? type : `${type} · ${downloads} download ${downloads === 1 ? 'link' : 'links'} created`;
}

function RowActions({ applicationId, file, onRename }: RowProps & { readonly onRename: () => void }) {
  const { id, displayName } = file;
  const queryClient = useQueryClient();
  const download = useMutation({
    mutationFn: () => latchkey.files.createDownloadUrl(applicationId, id),
    onSuccess: ({ url }) => {
      downloadUrl(displayName, url);
      void invalidateFiles(queryClient, applicationId);
    },
    onError: (error) => toast.error(`${displayName} was not downloaded`, error),
  });
  const remove = async () => {
    await latchkey.files.delete(applicationId, id);
    await invalidateFiles(queryClient, applicationId);
    toast.success('File deleted', displayName);
  };
  return (
    <span className={styles.actions}>
      <IconButton
        small
        icon="download"
        label={`Download ${displayName}`}
        aria-disabled={download.isPending || undefined}
        onClick={() => !download.isPending && download.mutate()}
      />
      <IconButton small icon="edit" label={`Rename ${displayName}`} onClick={onRename} />
      <ConfirmButton
        button={<IconButton small icon="trash" label={`Delete ${displayName}`} />}
        title={`Delete ${displayName}?`}
        action="Delete file"
        danger
        onConfirm={remove}
      >
        Its {formatBytes(file.byteSize)} are deleted, and its download links stop working. This cannot be undone.
      </ConfirmButton>
    </span>
  );
}

function Rename({ applicationId, file, onClose }: RowProps & { readonly onClose: () => void }) {
  const queryClient = useQueryClient();
  const rename = useMutation({
    mutationFn: (name: string) => latchkey.files.rename(applicationId, file.id, name),
    onSuccess: async (_result, name) => {
      await invalidateFiles(queryClient, applicationId);
      toast.success('File renamed', `${file.displayName} is now ${name}`);
      onClose();
    },
    onError: (error) => {
      // The input says so.
      if (isTaken(error)) void queryClient.invalidateQueries({ queryKey: ['file-name', applicationId] });
    },
  });
  const { error } = rename;
  return (
    <NameForm
      applicationId={applicationId}
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

const isTaken = (error: unknown) => error instanceof LatchkeyError && error.code === 'file_name_taken';
