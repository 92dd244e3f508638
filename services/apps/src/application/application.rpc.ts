import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import type { ServiceImpl } from '@connectrpc/connect';
import type { ApplicationService } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import type { AppsContext } from '../context.ts';
import {
  type Application,
  createApplication,
  deleteApplication,
  findOwnedApplications,
  listApplications,
} from './application.ts';

type Impl = ServiceImpl<typeof ApplicationService>;
type Methods = 'createApplication' | 'listApplications' | 'findOwnedApplications' | 'deleteApplication';

/** Creating, listing and deleting applications. */
export function applicationRpc(ctx: AppsContext): Pick<Impl, Methods> {
  return {
    async createApplication({ accountId, name }) {
      return { applicationId: await createApplication(ctx, accountId, name) };
    },
    async listApplications({ accountId, filter, pageSize, pageToken }) {
      const page = await listApplications(ctx, { accountId, applicationIds: filter?.applicationIds, pageSize, pageToken });
      return { applications: page.applications.map(toMessage), nextPageToken: page.nextPageToken };
    },
    async findOwnedApplications({ accountId, applicationIds }) {
      return { applicationIds: await findOwnedApplications(ctx, accountId, applicationIds) };
    },
    async deleteApplication({ accountId, applicationId }) {
      await deleteApplication(ctx, { accountId, applicationId });
      return {};
    },
  };
}

function toMessage({ id, name, socketKey, httpKey, keysUpdatedAt }: Application) {
  return { id, name, runtimeKeys: { socketKey, httpKey, updatedAt: timestampFromDate(keysUpdatedAt) } };
}
