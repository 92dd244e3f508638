import { OPERATOR } from '@latchkey/audit/actor';
import { recordAudit } from '@latchkey/audit/record';
import pLimit from 'p-limit';
import type { StorageContext } from '../../context.ts';
import { deleteFileRow } from '../file/file.ts';
import { insertObjectDeletions } from '../object-deletion/object-deletion.store.ts';
import { removeObjects } from '../object-deletion/object-deletion.ts';
import { OWN_REMOVAL_MS } from '../object-deletion/removal-delay.ts';
import { digestObject } from '../object-store/digest-object.ts';
import { requireObjectKey, type StoredObject } from '../object-store/object-store.ts';
import * as rows from './reconciler.store.ts';
import { findUnknownObjects } from './unknown-objects.ts';

type Context = Pick<StorageContext, 'db' | 'store' | 'logger'>;

export const FINDING_KINDS = [
  'missing object',
  'damaged object',
  'unreadable object',
  'lost avatar',
  'unknown object',
  'unfinished upload',
  'wrong usage',
] as const;
type FindingKind = (typeof FINDING_KINDS)[number];

interface Finding {
  readonly kind: FindingKind;
  readonly text: string;
  /** Repairs it; false where it no longer holds. Throws where it can't be repaired. */
  repair(): Promise<boolean>;
}

export interface ReconcileOptions {
  readonly repair: boolean;
  readonly skipChecksums: boolean;
  /** Repair even if so much is wrong that the settings are likely to be. */
  readonly force: boolean;
}

const checked = { files: 0, avatars: 0, bytesRead: 0, objects: 0, applications: 0, findings: 0, repaired: 0 };
export const createCounts = () => ({ ...checked, byKind: new Map<FindingKind, number>() });
export type Counts = ReturnType<typeof createCounts>;

const KIND_WIDTH = 20;

interface Run extends Context {
  readonly skipChecksums: boolean;
  readonly counts: Counts;
  report(finding: Finding): void;
}

const PAGE = 1_000;
const USAGE_PAGE = 100;
const READS_MAX = 4;
const STALL_MS = 60_000;
/** Findings that one run can repair; each is held until everything was compared. */
const REPAIRS_MAX = 100_000;
/** Up to this many lost files, or unknown objects, do not suggest wrong settings. */
const DOUBT_MIN = 10;

/**
 * Compares files, avatars, objects and recorded usage, and repairs what disagrees where `repair` is
 * set. Safe while uploads, deletions and other runs go on: every finding is confirmed after the
 * store was read, and again before its repair. Prints a line for each finding and each failed
 * repair. Returns how many findings are left, and why nothing was repaired. Throws where the
 * database or the store can't be used.
 */
export async function reconcile(ctx: Context, options: ReconcileOptions, counts: Counts, print: (line: string) => void) {
  const repairable: Finding[] = [];
  const describe = ({ kind, text }: Finding) => kind.padEnd(KIND_WIDTH) + text;
  const report = (finding: Finding) => {
    counts.findings += 1;
    counts.byKind.set(finding.kind, (counts.byKind.get(finding.kind) ?? 0) + 1);
    if (options.repair && repairable.length < REPAIRS_MAX) repairable.push(finding);
    print(describe(finding));
  };
  const run = { ...ctx, skipChecksums: options.skipChecksums, counts, report };
  // Usage is repaired first: the removal of a file subtracts from it.
  await checkUsage(run);
  await checkRows(run);
  for await (const object of findUnknownObjects(ctx, counts)) report(toUnknown(run, object));
  const doubt = options.repair && !options.force ? findDoubt(counts) : undefined;
  let left = counts.findings;
  if (doubt) return { doubt, left };
  for (const finding of repairable) {
    try {
      if (await finding.repair()) counts.repaired += 1;
      left -= 1;
    } catch (err) {
      print(`not repaired: ${describe(finding)} (${(err as Error).message})`);
    }
  }
  return { doubt, left };
}

/** A wrong folder, bucket or database resembles a loss; a repair would make it one. */
function findDoubt({ files, avatars, objects, byKind }: Counts): 'files' | 'objects' | undefined {
  const isMost = (all: number, ...kinds: FindingKind[]) => {
    const count = kinds.reduce((sum, kind) => sum + (byKind.get(kind) ?? 0), 0);
    return count > DOUBT_MIN && count * 2 > all;
  };
  const all = files + avatars;
  if (all > 0 && objects === 0) return 'files';
  if (isMost(all, 'missing object', 'damaged object', 'lost avatar')) return 'files';
  return isMost(objects, 'unknown object') ? 'objects' : undefined;
}

async function checkRows(run: Run): Promise<void> {
  const limit = pLimit(READS_MAX);
  for await (const page of rows.inPages(run.db, rows.selectObjectRows, PAGE)) {
    await limit.map(page, async (row) => {
      const fault = await inspect(run, row);
      // A deletion removes the row before the object, and a replacement gives it another one.
      if (fault && (await rows.hasRow(run.db, row))) run.report(toLost(run, row, fault));
      run.counts[row.type === 'file' ? 'files' : 'avatars'] += 1;
    });
  }
}

type Fault = readonly [kind: 'missing' | 'damaged' | 'unreadable', detail: string];

/** The damage of a row's object. Throws where the store can't be used at all. */
async function inspect(run: Run, { key, byteSize, checksum }: rows.ObjectRow): Promise<Fault | undefined> {
  try {
    const object: { byteSize: number; checksum?: Buffer } | undefined = await (run.skipChecksums
      ? run.store.stat(key)
      : hashObject(run, key));
    if (!object) return ['missing', 'there is no object'];
    if (object.byteSize !== byteSize) return ['damaged', `the object has ${countOf(object.byteSize, 'byte')}`];
    if (!object.checksum || checksum.equals(object.checksum)) return undefined;
    return ['damaged', `the SHA-256 is ${object.checksum.toString('hex')} and not ${checksum.toString('hex')}`];
  } catch (err) {
    await run.store.check();
    return ['unreadable', (err as Error).message];
  }
}

function hashObject({ store, counts }: Run, key: string) {
  const stalled = new AbortController();
  const timer = setTimeout(() => stalled.abort(new Error(`No bytes for ${STALL_MS} ms`)), STALL_MS);
  return digestObject(store, key, stalled.signal, (chunk) => {
    counts.bytesRead += chunk.byteLength;
    timer.refresh();
  }).finally(() => clearTimeout(timer));
}

function toLost(run: Run, row: rows.ObjectRow, [fault, detail]: Fault): Finding {
  const { type, id, ownerId, displayName, byteSize } = row;
  const repair = () => removeRow(run, row);
  if (type === 'avatar')
    return { kind: 'lost avatar', text: `avatar ${id} of account ${ownerId}: its image is ${fault}`, repair };
  const file = `file ${id} "${displayName}" (${countOf(byteSize, 'byte')}) of application ${ownerId}`;
  return { kind: `${fault} object`, text: `${file}: ${detail}`, repair };
}

async function removeRow(run: Run, row: rows.ObjectRow): Promise<boolean> {
  const [fault] = (await inspect(run, row)) ?? [];
  if (!fault) return false;
  if (fault === 'unreadable') throw new Error('an object that can not be read may be intact, so it is left alone');
  const { type, id, ownerId, key } = row;
  const isRemoved = await run.db.transaction().execute(async (tx) => {
    if (type === 'file') {
      const file = { applicationId: ownerId, fileId: id, objectId: requireObjectKey(key).id };
      return (await deleteFileRow(tx, file, { origin: OPERATOR, because: 'object_lost' })) !== undefined;
    }
    if (!(await rows.endAvatar(tx, id))) return false;
    const event = { accountId: ownerId, subject: { kind: 'account', id: ownerId }, changes: { because: 'object_lost' } } as const;
    await recordAudit(tx, OPERATOR, { ...event, action: 'account.avatar_removed' });
    await insertObjectDeletions(tx, [key], OWN_REMOVAL_MS);
    return true;
  });
  if (isRemoved) await removeObjects(run, [key]);
  return isRemoved;
}

function toUnknown({ db, store }: Run, { key, byteSize, unfinished }: StoredObject): Finding {
  const repair = async () => {
    const isUnknown = (await rows.selectUnknownKeys(db, [key])).has(key);
    if (isUnknown) await store.remove(key);
    return isUnknown;
  };
  if (unfinished) return { kind: 'unfinished upload', text: `${key}: left by an upload without an upload intent`, repair };
  return { kind: 'unknown object', text: `${key}: ${countOf(byteSize, 'byte')} that belong to no file`, repair };
}

async function checkUsage({ db, counts, report }: Run): Promise<void> {
  for await (const page of rows.inPages(db, rows.selectUsagePage, USAGE_PAGE)) {
    counts.applications += page.length;
    for (const { id, recorded, actual } of page) {
      const [before, after] = [describeUsage(recorded), describeUsage(actual)];
      if (before === after) continue;
      const repair = async () => {
        await db.transaction().execute((tx) => rows.recountUsage(tx, id));
        return true;
      };
      report({ kind: 'wrong usage', text: `application ${id}: ${before} recorded, ${after} there`, repair });
    }
  }
}

const describeUsage = (usage: rows.Usage | null) =>
  usage ? `${countOf(usage.fileCount, 'file')} and ${format(usage.chargedMib)} MiB` : 'nothing';

const format = (n: number) => n.toLocaleString('en-US');

export const countOf = (n: number, noun: string): string => `${format(n)} ${n === 1 ? noun : `${noun}s`}`;
