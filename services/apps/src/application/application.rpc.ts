import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import type { ServiceImpl } from '@connectrpc/connect';
import { actingFor } from '@latchkey/audit/actor';
import type { ApplicationService } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import type { AppsContext } from '../context.ts';
import {
  type Application,
  createApplication,
  deleteApplication,
  findOwnedApplications,
  getApplicationUsage,
  listApplications,
} from './application.ts';

type Impl = ServiceImpl<typeof ApplicationService>;
type Methods = 'createApplication' | 'listApplications' | 'getApplicationUsage' | 'findOwnedApplications' | 'deleteApplication';

/** Creating, listing and deleting applications. */
export function applicationRpc(ctx: AppsContext): Pick<Impl, Methods> {
  return {
    async createApplication({ accountId, name }, call) {
      return { applicationId: await createApplication(actingFor(ctx, call), accountId, name) };
    },
    async listApplications({ accountId, filter, pageSize, pageToken }) {
      const page = await listApplications(ctx, { accountId, applicationIds: filter?.applicationIds, pageSize, pageToken });
      return { applications: page.applications.map(toMessage), nextPageToken: page.nextPageToken };
    },
    async getApplicationUsage({ accountId }) {
      const { count, countMax } = await getApplicationUsage(ctx, accountId);
      return { applicationCount: BigInt(count), applicationCountMax: BigInt(countMax) };
    },
    async findOwnedApplications({ accountId, applicationIds }) {
      return { applicationIds: await findOwnedApplications(ctx, accountId, applicationIds) };
    },
    async deleteApplication({ accountId, applicationId }, call) {
      await deleteApplication(actingFor(ctx, call), { accountId, applicationId });
      return {};
    },
  };
}

function toMessage({ id, name, socketKey, httpKey, keysUpdatedAt }: Application) {
  return { id, name, runtimeKeys: { socketKey, httpKey, updatedAt: timestampFromDate(keysUpdatedAt) } };
}
