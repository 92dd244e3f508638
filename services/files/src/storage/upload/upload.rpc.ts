import type { ServiceImpl } from '@connectrpc/connect';
import { actingFor } from '@latchkey/kit/audit/actor';
import { REQUEST_ID_HEADER } from '@latchkey/kit/rpc/route';
import type { FileService } from '@latchkey/proto/latchkey/files/v1/file_pb';
import type { FilesContext } from '../../context.ts';
import { abandonTicket } from './abandon-ticket.ts';
import { beginUpload } from './begin-upload.ts';

/** The control path of uploads. */
export function uploadRpc(ctx: FilesContext): Pick<ServiceImpl<typeof FileService>, 'beginUpload' | 'abandonUpload'> {
  return {
    async beginUpload({ accountId, applicationId, fileName, byteSize, expectedChecksum }, call) {
      const ticket = await beginUpload(actingFor(ctx, call), {
        accountId,
        applicationId,
        fileName,
        byteSize: byteSize === undefined ? undefined : Number(byteSize),
        expectedChecksum: expectedChecksum.byteLength === 0 ? undefined : expectedChecksum,
        requestId: call.requestHeader.get(REQUEST_ID_HEADER) ?? '',
      });
      return { ticket };
    },
    async abandonUpload({ ticket }) {
      await abandonTicket(ctx, ticket);
      return {};
    },
  };
}
