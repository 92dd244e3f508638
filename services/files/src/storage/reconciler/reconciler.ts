import { OPERATOR } from '@latchkey/audit/actor';
import { recordAudit } from '@latchkey/audit/record';
import type { FilesContext } from '../../context.ts';
import { deleteFileRow } from '../file/delete-file.ts';
import { insertObjectDeletions } from '../object-deletion.store.ts';
import { OWN_REMOVAL_MS, removeObjects } from '../object-deletion.ts';
import type { StoredObject } from '../object-store/object-store.ts';
import {
  type Counts,
  countOf,
  describeUsage,
  type Finding,
  type FindingKind,
  type Observer,
  type ReconcileOptions,
  type Summary,
} from './finding.ts';
import { type Fault, inspectObject } from './inspect-object.ts';
import * as store from './reconciler.store.ts';
import { findUnknownObjects } from './unknown-objects.ts';

export type ReconcileContext = Pick<FilesContext, 'db' | 'store' | 'logger'>;

interface Run extends ReconcileContext {
  readonly skipChecksums: boolean;
  readonly counts: Counts;
  report(finding: Finding): void;
}

const PAGE = 1_000;
const USAGE_PAGE = 100;
/** Concurrent reads, so that the service keeps most of its disk and network. */
const READS_MAX = 4;
/** Findings that one run can repair; each is kept until everything was compared. */
const REPAIRS_MAX = 100_000;
/** Fewer lost files, or unknown objects, never speak against the settings. */
const DOUBT_MIN = 10;

/**
 * Compares files, avatars, objects and recorded usage, and repairs what disagrees where `mend` is
 * set. Safe while uploads, deletions and other runs go on: every finding is confirmed after the
 * store was read, and again before its repair.
 *
 * @throws where the database or the store can't be used
 */
export async function reconcile(ctx: ReconcileContext, options: ReconcileOptions, observer: Observer): Promise<Summary> {
  const { counts } = observer;
  const byKind = new Map<FindingKind, number>();
  const repairable: Finding[] = [];
  const report = (finding: Finding) => {
    counts.findings += 1;
    byKind.set(finding.kind, (byKind.get(finding.kind) ?? 0) + 1);
    if (options.mend && repairable.length < REPAIRS_MAX) repairable.push(finding);
    observer.onFinding(finding);
  };
  const run = { ...ctx, skipChecksums: options.skipChecksums, counts, report };
  counts.filesExpected = await store.selectFileCount(ctx.db);
  await checkRows(run, 'files', store.selectFileRows);
  await checkRows(run, 'avatars', store.selectAvatarRows);
  for await (const object of findUnknownObjects(ctx, () => {
    counts.objects += 1;
  }))
    report(toUnknown(run, object));
  await checkUsage(run);
  const refusal = options.mend && !options.force ? findDoubt(counts, byKind) : undefined;
  if (refusal) return { byKind, refusal, left: counts.findings };
  // Usage first: the removal of a file subtracts from it.
  const isUsage = ({ kind }: Finding) => kind === 'wrong usage';
  let left = counts.findings;
  for (const finding of [...repairable.filter(isUsage), ...repairable.filter((one) => !isUsage(one))]) {
    try {
      const outcome = await finding.repair();
      if (outcome === 'mended') counts.mended += 1;
      left -= 1;
      observer.onRepair(finding, outcome);
    } catch (err) {
      observer.onRepair(finding, 'failed', err);
    }
  }
  return { byKind, refusal, left };
}

/** A wrong folder, bucket or database looks like a loss; to repair that would be the loss. */
function findDoubt(counts: Counts, byKind: ReadonlyMap<FindingKind, number>): Summary['refusal'] {
  const found = (...kinds: FindingKind[]) => kinds.reduce((sum, kind) => sum + (byKind.get(kind) ?? 0), 0);
  const isMost = (count: number, all: number) => count > DOUBT_MIN && count * 2 > all;
  const rows = counts.files + counts.avatars;
  if (rows > 0 && counts.objects === 0) return 'files';
  if (isMost(found('missing object', 'damaged object', 'lost avatar'), rows)) return 'files';
  return isMost(found('unknown object'), counts.objects) ? 'objects' : undefined;
}

async function checkRows(run: Run, count: 'files' | 'avatars', select: typeof store.selectFileRows): Promise<void> {
  for (let after = store.FIRST_ID; ; ) {
    const page = await select(run.db, after, PAGE);
    const waiting = page.values();
    const worker = async () => {
      for (const row of waiting) {
        const fault = await inspectObject(run, row);
        // Its row goes before an object does.
        if (fault && (await store.hasRow(run.db, row))) run.report(toLost(run, row, fault));
        run.counts[count] += 1;
      }
    };
    await Promise.all(Array.from({ length: READS_MAX }, worker));
    const last = page.at(-1);
    if (!last || page.length < PAGE) return;
    after = last.id;
  }
}

function toLost(run: Run, row: store.ObjectRow, { kind, detail }: Fault): Finding {
  const { type, id, ownerId, displayName, byteSize } = row;
  const repair = () => removeRow(run, row);
  if (type === 'avatar') {
    return { kind: 'lost avatar', subject: id, text: `avatar ${id} of account ${ownerId}: its image is ${kind}`, repair };
  }
  const file = `file ${id} "${displayName}" (${countOf(byteSize, 'byte')}) of application ${ownerId}`;
  return { kind: `${kind} object`, subject: id, text: `${file}: ${detail}`, repair };
}

/** Deletes the file, or takes the avatar from its account. */
async function removeRow(run: Run, row: store.ObjectRow): Promise<'mended' | 'gone'> {
  const fault = await inspectObject(run, row);
  if (!fault) return 'gone';
  if (fault.kind === 'unreadable') throw new Error('an object that can not be read may be intact, so it is left alone');
  const { type, id, ownerId, key } = row;
  const isRemoved = await run.db.transaction().execute(async (tx) => {
    if (type === 'file') {
      const event = { origin: OPERATOR, because: 'object_lost', removalMs: OWN_REMOVAL_MS };
      return deleteFileRow(tx, { applicationId: ownerId, fileId: id }, event);
    }
    if (!(await store.endAvatar(tx, id))) return false;
    const subject = { kind: 'account' as const, id: ownerId };
    const changes = { because: 'object_lost' };
    await recordAudit(tx, OPERATOR, { accountId: ownerId, action: 'account.avatar_removed', subject, changes });
    await insertObjectDeletions(tx, [key], OWN_REMOVAL_MS);
    return true;
  });
  if (!isRemoved) return 'gone';
  await removeObjects(run, [key]);
  return 'mended';
}

function toUnknown(run: Run, { key, byteSize, unfinished }: StoredObject): Finding {
  const repair = async () => {
    if (!(await store.selectUnknownKeys(run.db, [key])).has(key)) return 'gone';
    await run.store.remove(key);
    return 'mended';
  };
  if (unfinished) {
    return { kind: 'unfinished upload', subject: key, text: `${key}: what is left of an upload that nobody knows`, repair };
  }
  return { kind: 'unknown object', subject: key, text: `${key}: ${countOf(byteSize, 'byte')} that belong to no file`, repair };
}

async function checkUsage(run: Run): Promise<void> {
  for (let after = store.FIRST_ID; ; ) {
    const page = await store.selectUsagePage(run.db, after, USAGE_PAGE);
    for (const { applicationId, recorded, actual } of page) {
      if (recorded?.fileCount === actual.fileCount && recorded.chargedMib === actual.chargedMib) continue;
      const text = `application ${applicationId}: ${describeUsage(recorded)} recorded, ${describeUsage(actual)} there`;
      const repair = async () => {
        await run.db.transaction().execute((tx) => store.recountUsage(tx, applicationId));
        return 'mended' as const;
      };
      run.report({ kind: 'wrong usage', subject: applicationId, text, repair });
    }
    run.counts.applications += page.length;
    const last = page.at(-1);
    if (!last || page.length < USAGE_PAGE) return;
    after = last.applicationId;
  }
}
