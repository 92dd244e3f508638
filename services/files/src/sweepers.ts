import { createAuditSweeper } from '@latchkey/audit/retention';
import { followDeletions } from '@latchkey/deletions/follow-deletions';
import type { DataServiceParts } from '@latchkey/kit/database/data-service';
import { redisUrls } from '@latchkey/kit/redis/redis-url';
import { createSweeper, type Sweep } from '@latchkey/kit/sweeper/sweeper';
import { sweepAvatars } from './avatars/avatar.ts';
import { createDeletedAccountsSweep } from './avatars/deleted-accounts.consumer.ts';
import type { FilesConfig } from './config.ts';
import type { FilesContext, Peers } from './context.ts';
import { selectHalfDeleted, selectUnmarked } from './storage/application/deleted-application.store.ts';
import { cleanUpApplication, purgeTombstones } from './storage/application/deleted-application.ts';
import { sweepObjectDeletions } from './storage/object-deletion/object-deletion.ts';
import { reportUnknownObjects } from './storage/reconciler/unknown-objects.ts';
import { sweepResumableUploads } from './storage/resumable-upload/resumable-upload.ts';
import { sweepAbandonedUploads } from './storage/upload/receive-upload.ts';

/** Lists the whole store each time: one request per 1,000 objects. */
const RECONCILE_INTERVAL_MS = 3_600_000;

const HALF_DELETED_MAX = 100;

/** Sweeps that run at intervals, and the follower of deleted applications. */
export function createSweepers(
  ctx: FilesContext,
  config: FilesConfig,
  { appsTransport, identityTransport }: Peers,
): DataServiceParts['background'] {
  const { pool, logger, limits } = ctx;
  const every = (intervalMs: number, sweeps: Record<string, Sweep>) => createSweeper({ intervalMs, logger, sweeps });
  // Alone, as a deletion wakes it, and so that nothing else delays it.
  const objects = every(limits.sweepIntervalMs, { objects: (signal) => sweepObjectDeletions(ctx, signal) });
  const deletions = followDeletions({
    ...{ service: 'files', redisUrl: redisUrls(config).queues, appsTransport, clock: ctx.clock, logger },
    selectUnfinished: () => selectHalfDeleted(ctx.db, HALF_DELETED_MAX),
    selectPending: (deleted) => selectUnmarked(ctx.db, deleted),
    forget: (application) => cleanUpApplication(ctx, application, objects.wake),
  });
  const others = every(limits.sweepIntervalMs, {
    // First: after a start, nothing may serve the files of applications deleted meanwhile for long.
    deleted_applications: deletions.reconcile,
    uploads: (signal) => sweepAbandonedUploads(ctx, signal).finally(objects.wake),
    resumable_uploads: (signal) => sweepResumableUploads(ctx, signal),
    avatars: (signal) => sweepAvatars(ctx, limits.sweepIntervalMs, signal),
    avatars_of_accounts: createDeletedAccountsSweep(ctx, identityTransport, objects.wake),
    tombstones: (signal) => purgeTombstones(ctx, signal),
  });
  const reconciler = every(RECONCILE_INTERVAL_MS, { unknown_objects: (signal) => reportUnknownObjects(ctx, signal) });
  return [
    objects,
    others,
    reconciler,
    createAuditSweeper({ db: ctx.db, pool, retentionDays: config.AUDIT_RETENTION_DAYS, logger }),
    deletions.worker,
  ];
}
