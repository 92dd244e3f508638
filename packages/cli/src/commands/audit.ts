import { setTimeout as sleep } from 'node:timers/promises';
import type { AuditEntry, Latchkey } from '@latchkey/client';
import { AUDIT_CSV_HEADINGS, toAuditCsvCells, toCsvLine } from '@latchkey/contract/audit-csv';
import { AUDIT_PAGE_SIZE } from '@latchkey/contract/page-size';
import { Option } from 'commander';
import { resolveApplication } from '../lookup/resolve.ts';
import { formatTime, printable, toJson } from '../output/text.ts';
import { type CliCommand, wholeNumber } from '../program/command.ts';
import type { Context } from '../program/context.ts';
import { CliError } from '../program/errors.ts';
import { type SessionOptions, withSession } from '../session/session.ts';

const POLL_MS = 5_000;
/** Entries that `--follow` remembers, so as not to print them twice. */
const SEEN_MAX = 4_000;

interface AuditOptions extends SessionOptions {
  readonly app?: string;
  readonly action?: string;
  readonly limit: number;
  readonly follow?: boolean;
  readonly csv?: boolean;
}

type Filter = { readonly applicationId?: string; readonly action?: string };

interface Reading {
  readonly filter: Filter;
  readonly options: AuditOptions;
  readonly signal: AbortSignal;
}

export function addAudit(program: CliCommand): void {
  program
    .command('audit')
    .summary('Read the audit log (asks for the password)')
    .description('Read the audit log, newest first; asks for the password, as keys may not read it')
    .addOption(new Option('-a, --app <app>', 'only changes of this application and its files').conflicts('action'))
    .option('--action <action>', 'only this action, such as application.paused')
    .option(
      '-n, --limit <count>',
      'number of entries',
      wholeNumber(1, Number.POSITIVE_INFINITY, 'a whole number from 1'),
      AUDIT_PAGE_SIZE.default,
    )
    .option('--follow', 'then print new entries as they come, until Ctrl-C; oldest first')
    .option('--csv', 'print comma-separated values; an apostrophe precedes formulas')
    .sessionOptions()
    .run(audit)
    .examples(
      ['latchkey audit --app "Difference Engine" --follow', 'Watch the changes of an application'],
      ['latchkey audit --csv --limit 10000 > audit.csv', 'Export the log'],
    );
}

function audit(context: Context, options: AuditOptions): Promise<void> {
  if (options.csv && context.options.json) throw new CliError('usage', 'Both --csv and --json were given. Choose one of them.');
  return withSession(context, options, async (client, signal) => {
    const { app, action } = options;
    const filter: Filter = {
      ...(app !== undefined && { applicationId: (await resolveApplication(client, app)).id }),
      ...(action !== undefined && { action }),
    };
    try {
      await printLog(context, client, { filter, options, signal });
    } catch (err) {
      if (!signal.aborted) throw err;
      // Ctrl-C is the usual end of --follow; without it, the log is incomplete.
      if (!options.follow) throw new CliError('failed', 'Interrupted. Run it again to read the log.');
    }
  });
}

async function printLog(context: Context, client: Latchkey, reading: Reading): Promise<void> {
  const { options } = reading;
  if (options.csv) context.io.stdout.write(toCsvLine(AUDIT_CSV_HEADINGS));
  if (options.follow) return followEntries(context, client, reading);
  const entries = await readEntries(client, reading, options.limit);
  if (options.csv) for (const entry of entries) writeEntry(context, options, entry);
  else context.printTable(entries, ['TIME (UTC)', 'ACTION', 'BY', 'CHANGES'], entries.map(toRow));
}

async function readEntries(client: Latchkey, { filter, signal }: Reading, limit: number): Promise<readonly AuditEntry[]> {
  const entries: AuditEntry[] = [];
  for await (const entry of client.auditLog.iterate({ ...filter, signal })) {
    entries.push(entry);
    if (entries.length >= limit) break;
  }
  return entries;
}

/**
 * Three services store the log, so an entry may appear after others that are newer: every poll
 * reads a page, and prints what was not there before.
 */
async function followEntries(context: Context, client: Latchkey, reading: Reading): Promise<void> {
  const { options, signal } = reading;
  const first = await readEntries(client, reading, Math.max(options.limit, AUDIT_PAGE_SIZE.max));
  const seen = new Set(first.map(({ id }) => id));
  for (const entry of first.slice(0, options.limit).reverse()) writeEntry(context, options, entry);
  while (!signal.aborted) {
    await sleep(POLL_MS, undefined, { signal }).catch(() => undefined);
    if (signal.aborted) return;
    const unseen = await readUnseen(client, reading, seen);
    for (const entry of unseen.reverse()) {
      writeEntry(context, options, entry);
      seen.add(entry.id);
    }
    for (const id of seen) if (seen.size > SEEN_MAX) seen.delete(id);
  }
}

/** Entries that were not printed, newest first. Reads a whole page beyond the first known one. */
async function readUnseen(client: Latchkey, { filter, signal }: Reading, seen: ReadonlySet<string>): Promise<AuditEntry[]> {
  const unseen: AuditEntry[] = [];
  let known = 0;
  for await (const entry of client.auditLog.iterate({ ...filter, signal })) {
    if (seen.has(entry.id)) known += 1;
    else unseen.push(entry);
    if (known + unseen.length >= AUDIT_PAGE_SIZE.max && (known > 0 || unseen.length >= SEEN_MAX / 2)) break;
  }
  return unseen;
}

function writeEntry({ io: { stdout }, options: { json } }: Context, { csv }: AuditOptions, entry: AuditEntry): void {
  if (json) stdout.write(`${toJson(entry)}\n`);
  else if (csv) stdout.write(toCsvLine(toAuditCsvCells(entry).map(printable)));
  else stdout.write(`${toRow(entry).map(printable).join('  ').trimEnd()}\n`);
}

function toRow({ at, action, actor, changes }: AuditEntry): string[] {
  const texts = Object.entries(changes).map(
    ([name, value]) => `${name} ${typeof value === 'string' ? value : JSON.stringify(value)}`,
  );
  return [formatTime(at), action, `${actor.kind} ${actor.address ?? ''}`.trim(), texts.join(', ')];
}
