import { createHash } from 'node:crypto';
import { OPERATOR } from '@latchkey/audit/actor';
import { recordAudit } from '@latchkey/audit/record';
import type { StorageContext } from '../../context.ts';
import { deleteFileRow } from '../file/delete-file.ts';
import { insertObjectDeletions, OWN_REMOVAL_MS } from '../object-deletion/object-deletion.store.ts';
import { removeObjects } from '../object-deletion/object-deletion.ts';
import type { StoredObject } from '../object-store/object-store.ts';
import * as rows from './reconciler.store.ts';
import { findUnknownObjects } from './unknown-objects.ts';

export type ReconcileContext = Pick<StorageContext, 'db' | 'store' | 'logger'>;

export const FINDING_KINDS = [
  'missing object',
  'damaged object',
  'unreadable object',
  'lost avatar',
  'unknown object',
  'unfinished upload',
  'wrong usage',
] as const;
export type FindingKind = (typeof FINDING_KINDS)[number];

export interface Finding {
  readonly kind: FindingKind;
  readonly text: string;
  /** Repairs it if it still holds. Throws where it can't be repaired. */
  repair(): Promise<'repaired' | 'gone'>;
}

export interface ReconcileOptions {
  readonly repair: boolean;
  readonly skipChecksums: boolean;
  /** Repair even if so much is wrong that the settings are likely to be. */
  readonly force: boolean;
}

export const createCounts = () => ({ files: 0, avatars: 0, bytesRead: 0, objects: 0, applications: 0, findings: 0, repaired: 0 });
export type Counts = ReturnType<typeof createCounts>;

export interface Observer {
  readonly counts: Counts;
  onFinding(finding: Finding): void;
  onRepair(finding: Finding, outcome: 'repaired' | 'gone' | 'failed', err?: unknown): void;
}

export interface Summary {
  readonly byKind: ReadonlyMap<FindingKind, number>;
  readonly left: number;
  /** Why nothing was repaired: most files have no intact object, or most objects no file. */
  readonly doubt: 'files' | 'objects' | undefined;
}

interface Run extends ReconcileContext {
  readonly skipChecksums: boolean;
  readonly counts: Counts;
  report(finding: Finding): void;
}

interface Fault {
  readonly kind: 'missing' | 'damaged' | 'unreadable';
  readonly detail: string;
}

const PAGE = 1_000;
const USAGE_PAGE = 100;
const READS_MAX = 4;
const STALL_MS = 60_000;
/** Findings that one run can repair; each is held until everything was compared. */
const REPAIRS_MAX = 100_000;
/** Up to so many lost files, or unknown objects, do not suggest wrong settings. */
const DOUBT_MIN = 10;

/**
 * Compares files, avatars, objects and recorded usage, and repairs what disagrees where `repair` is
 * set. Safe while uploads, deletions and other runs go on: every finding is confirmed after the
 * store was read, and again before its repair. Throws where the database or the store can't be
 * used.
 */
export async function reconcile(ctx: ReconcileContext, options: ReconcileOptions, observer: Observer): Promise<Summary> {
  const { counts } = observer;
  const byKind = new Map<FindingKind, number>();
  const repairable: Finding[] = [];
  const report = (finding: Finding) => {
    counts.findings += 1;
    byKind.set(finding.kind, (byKind.get(finding.kind) ?? 0) + 1);
    if (options.repair && repairable.length < REPAIRS_MAX) repairable.push(finding);
    observer.onFinding(finding);
  };
  const run = { ...ctx, skipChecksums: options.skipChecksums, counts, report };
  await checkRows(run);
  for await (const object of findUnknownObjects(ctx, counts)) report(toUnknown(run, object));
  await checkUsage(run);
  const doubt = options.repair && !options.force ? findDoubt(counts, byKind) : undefined;
  let left = counts.findings;
  if (doubt) return { byKind, doubt, left };
  // Usage first: the removal of a file subtracts from it.
  const isUsage = ({ kind }: Finding) => kind === 'wrong usage';
  for (const finding of [...repairable.filter(isUsage), ...repairable.filter((one) => !isUsage(one))]) {
    try {
      const outcome = await finding.repair();
      if (outcome === 'repaired') counts.repaired += 1;
      left -= 1;
      observer.onRepair(finding, outcome);
    } catch (err) {
      observer.onRepair(finding, 'failed', err);
    }
  }
  return { byKind, doubt, left };
}

/** A wrong folder, bucket or database resembles a loss; a repair would make it one. */
function findDoubt(counts: Counts, byKind: ReadonlyMap<FindingKind, number>): Summary['doubt'] {
  const found = (...kinds: FindingKind[]) => kinds.reduce((sum, kind) => sum + (byKind.get(kind) ?? 0), 0);
  const isMost = (count: number, all: number) => count > DOUBT_MIN && count * 2 > all;
  const all = counts.files + counts.avatars;
  if (all > 0 && counts.objects === 0) return 'files';
  if (isMost(found('missing object', 'damaged object', 'lost avatar'), all)) return 'files';
  return isMost(found('unknown object'), counts.objects) ? 'objects' : undefined;
}

async function checkRows(run: Run): Promise<void> {
  for (let after = rows.FIRST_ID; ; ) {
    const page = await rows.selectObjectRows(run.db, after, PAGE);
    const waiting = page.values();
    const worker = async () => {
      for (const row of waiting) {
        const fault = await inspect(run, row);
        // A deletion removes the row before the object.
        if (fault && (await rows.hasRow(run.db, row))) run.report(toLost(run, row, fault));
        run.counts[row.type === 'file' ? 'files' : 'avatars'] += 1;
      }
    };
    await Promise.all(Array.from({ length: READS_MAX }, worker));
    const last = page.at(-1);
    if (!last || page.length < PAGE) return;
    after = last.id;
  }
}

/** What is wrong with the object of a row. Throws where the store can't be used at all. */
async function inspect(run: Run, { key, byteSize, checksum }: rows.ObjectRow): Promise<Fault | undefined> {
  try {
    const object: { byteSize: number; checksum?: Buffer } | undefined = await (run.skipChecksums
      ? run.store.stat(key)
      : hashObject(run, key));
    if (!object) return { kind: 'missing', detail: 'there is no object' };
    if (object.byteSize !== byteSize) return { kind: 'damaged', detail: `the object has ${countOf(object.byteSize, 'byte')}` };
    if (!object.checksum || checksum.equals(object.checksum)) return undefined;
    const [actual, expected] = [object.checksum.toString('hex'), checksum.toString('hex')];
    return { kind: 'damaged', detail: `the SHA-256 is ${actual} and not ${expected}` };
  } catch (err) {
    await run.store.check();
    return { kind: 'unreadable', detail: (err as Error).message };
  }
}

async function hashObject({ store, counts }: Run, key: string): Promise<{ byteSize: number; checksum: Buffer } | undefined> {
  const body = await store.read(key);
  if (!body) return undefined;
  const hash = createHash('sha256');
  let byteSize = 0;
  const stalled = setTimeout(() => body.destroy(new Error(`No bytes for ${STALL_MS} ms`)), STALL_MS);
  try {
    for await (const chunk of body as AsyncIterable<Buffer>) {
      hash.update(chunk);
      byteSize += chunk.byteLength;
      counts.bytesRead += chunk.byteLength;
      stalled.refresh();
    }
  } finally {
    clearTimeout(stalled);
  }
  return { byteSize, checksum: hash.digest() };
}

function toLost(run: Run, row: rows.ObjectRow, { kind, detail }: Fault): Finding {
  const { type, id, ownerId, displayName, byteSize } = row;
  const repair = () => removeRow(run, row);
  if (type === 'avatar') return { kind: 'lost avatar', text: `avatar ${id} of account ${ownerId}: its image is ${kind}`, repair };
  const file = `file ${id} "${displayName}" (${countOf(byteSize, 'byte')}) of application ${ownerId}`;
  return { kind: `${kind} object`, text: `${file}: ${detail}`, repair };
}

async function removeRow(run: Run, row: rows.ObjectRow): Promise<'repaired' | 'gone'> {
  const fault = await inspect(run, row);
  if (!fault) return 'gone';
  if (fault.kind === 'unreadable') throw new Error('an object that can not be read may be intact, so it is left alone');
  const { type, id, ownerId, key } = row;
  const isRemoved = await run.db.transaction().execute(async (tx) => {
    if (type === 'file') {
      const file = { applicationId: ownerId, fileId: id };
      return deleteFileRow(tx, file, { origin: OPERATOR, because: 'object_lost', removalMs: OWN_REMOVAL_MS });
    }
    if (!(await rows.endAvatar(tx, id))) return false;
    const event = { accountId: ownerId, subject: { kind: 'account', id: ownerId }, changes: { because: 'object_lost' } } as const;
    await recordAudit(tx, OPERATOR, { ...event, action: 'account.avatar_removed' });
    await insertObjectDeletions(tx, [key], OWN_REMOVAL_MS);
    return true;
  });
  if (!isRemoved) return 'gone';
  await removeObjects(run, [key]);
  return 'repaired';
}

function toUnknown({ db, store }: Run, { key, byteSize, unfinished }: StoredObject): Finding {
  const repair = async () => {
    if (!(await rows.selectUnknownKeys(db, [key])).has(key)) return 'gone';
    await store.remove(key);
    return 'repaired';
  };
  if (unfinished) return { kind: 'unfinished upload', text: `${key}: left by an upload without an upload intent`, repair };
  return { kind: 'unknown object', text: `${key}: ${countOf(byteSize, 'byte')} that belong to no file`, repair };
}

async function checkUsage({ db, counts, report }: Run): Promise<void> {
  const describe = (usage: rows.UsageFigures | undefined) =>
    usage ? `${countOf(usage.fileCount, 'file')} and ${format(usage.chargedMib)} MiB` : 'nothing';
  for (let after = rows.FIRST_ID; ; ) {
    const page = await rows.selectUsagePage(db, after, USAGE_PAGE);
    for (const { applicationId, recorded, actual } of page) {
      if (recorded?.fileCount === actual.fileCount && recorded.chargedMib === actual.chargedMib) continue;
      const text = `application ${applicationId}: ${describe(recorded)} recorded, ${describe(actual)} there`;
      const repair = async () => {
        await db.transaction().execute((tx) => rows.recountUsage(tx, applicationId));
        return 'repaired' as const;
      };
      report({ kind: 'wrong usage', text, repair });
    }
    counts.applications += page.length;
    const last = page.at(-1);
    if (!last || page.length < USAGE_PAGE) return;
    after = last.applicationId;
  }
}

const format = (n: number) => n.toLocaleString('en-US');

export const countOf = (n: number, noun: string): string => `${format(n)} ${n === 1 ? noun : `${noun}s`}`;
