import type { Readable } from 'node:stream';
import { isDatabaseUnavailable } from '@latchkey/kit/database/database';
import { commonErrors, DomainError, fromConnectError } from '@latchkey/kit/errors';
import type { FilesContext } from '../../context.ts';
import { uploads, uploadsRunning } from '../../files-metrics.ts';
import type { StoredUpload } from './commit-upload.ts';
import { receiveUpload } from './receive-upload.ts';

/** What answers the body of an upload, as `UploadFileResponse` has it. */
export interface UploadAnswer {
  readonly id: string;
  readonly byteSize: bigint;
  readonly checksum: Buffer;
}

/** Takes the bytes of an upload, from another process or from this one. Rejects with a DomainError, or with what is a defect. */
export type ReceiveBody = (ticket: string, body: Readable, requestId: string) => Promise<UploadAnswer>;

/** The data path of uploads. */
export function createUploadBody(ctx: FilesContext): ReceiveBody {
  let running = 0;
  uploadsRunning.watch(() => [[running]]);
  return async (ticket, body, requestId) => {
    const startedAt = performance.now();
    // It may break off before it is read and after; nobody else need listen.
    body.on('error', () => undefined);
    const facts = () => ({ requestId, ms: Math.round(performance.now() - startedAt) });
    running += 1;
    try {
      const stored = await receiveUpload(ctx, { ticket, body, requestId });
      ctx.logger.info({ ...facts(), fileId: stored.id, byteSize: stored.byteSize }, 'upload');
      uploads.add(1, 'stored');
      return toAnswer(stored);
    } catch (err) {
      const known = toDomainError(err);
      uploads.add(1, known?.reason ?? 'internal');
      if (!known) ctx.logger.error({ ...facts(), err }, 'upload failed');
      else ctx.logger.info({ ...facts(), reason: known.reason }, 'upload refused');
      throw known ?? err;
    } finally {
      running -= 1;
    }
  };
}

function toAnswer({ id, byteSize, checksum }: StoredUpload): UploadAnswer {
  return { id, byteSize: BigInt(byteSize), checksum };
}

function toDomainError(err: unknown): DomainError | undefined {
  if (err instanceof DomainError) return err;
  return fromConnectError(err) ?? (isDatabaseUnavailable(err) ? commonErrors.dependency_unavailable() : undefined);
}
