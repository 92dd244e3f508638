import type { ServiceImpl } from '@connectrpc/connect';
import { actingFor } from '@latchkey/audit/actor';
import { type ApplicationService, RuntimeKeyType } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import type { AppsContext } from '../context.ts';
import { errors } from '../errors.ts';
import { toSettingsMessage } from '../setting/setting.ts';
import { lookUpApplication, rotateRuntimeKey } from './runtime-key.ts';

type Impl = ServiceImpl<typeof ApplicationService>;

/** Rotating runtime keys, and looking up an application by one. */
export function runtimeKeyRpc(ctx: AppsContext): Pick<Impl, 'lookUpApplication' | 'rotateRuntimeKey'> {
  return {
    async lookUpApplication({ key }) {
      if (key.case === undefined) throw errors.runtime_key_invalid();
      const { row, keyFingerprint } = await lookUpApplication(ctx, key.case, key.value);
      return {
        applicationId: row.id,
        accountId: row.account_id,
        name: row.name,
        settings: toSettingsMessage(row),
        lastSequence: BigInt(row.last_sequence),
        keyFingerprint,
      };
    },
    rotateRuntimeKey: (request, call) => rotateRuntimeKey(actingFor(ctx, call), request, toType(request.type)),
  };
}

function toType(type: RuntimeKeyType) {
  if (type === RuntimeKeyType.SOCKET) return 'socketKey';
  if (type === RuntimeKeyType.HTTP) return 'httpKey';
  throw errors.runtime_key_type_invalid();
}
