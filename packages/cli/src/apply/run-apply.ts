import { readFile } from 'node:fs/promises';
import { basename, dirname, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import type { Context } from '../program/context.ts';
import { CliError } from '../program/errors.ts';
import type { Io } from '../program/io.ts';
import { createRateLimitRetry } from '../program/rate-limit-retry.ts';
import { UploadProgress } from '../upload/upload-progress.ts';
import { declarationSchema } from './declaration.ts';
import { executePlan } from './execute.ts';
import { formatDeclaration } from './export.ts';
import { describeCount, describeDeletions, describeUndeclared, formatPlan } from './format-plan.ts';
import { parseDeclaration } from './parse-declaration.ts';
import { countChanges, type Plan, planChanges } from './plan.ts';
import { readFiles } from './read-files.ts';
import { type Etags, readState } from './read-state.ts';
import { DeclarationError } from './state.ts';

export interface ApplyOptions {
  readonly file: string;
  readonly dryRun?: boolean;
  readonly exitCode?: boolean;
  readonly prune?: boolean;
}

export async function applyFile(context: Context, options: ApplyOptions): Promise<void> {
  const { file, dryRun = false, exitCode = false, prune = false } = options;
  if (exitCode && !dryRun) throw new CliError('usage', '--exit-code is for comparing. Add --dry-run.');
  const { io } = context;
  const retryRateLimited = createRateLimitRetry((line) => context.note(line));
  const { applications } = await reportProblems(context, async () => parseDeclaration(await readText(file, io), basename(file)));
  const client = await context.client();
  const declaredIn = (declared: typeof applications) => {
    const names = new Set(declared.flatMap(({ id, name }) => [id, name]));
    return ({ id, name }: { readonly id: string; readonly name: string }) => names.has(id) || names.has(name);
  };
  const etags = new Map<string, Etags>();
  const state = await readState(client, {
    retryRateLimited,
    etags,
    isNeeded: declaredIn(applications),
    needsReleases: declaredIn(applications.filter(({ channels }) => channels !== undefined)),
  });
  const baseDir = file === '-' ? process.cwd() : dirname(resolve(file));
  // Keys may lack the scope: the server then rejects what is too large.
  const sizeMiBMax = await client.limits.get().then(
    ({ fileSizeMiB }) => fileSizeMiB,
    () => undefined,
  );
  const plan = await reportProblems(context, async () =>
    planChanges(await readFiles(applications, baseDir, sizeMiBMax), state, prune),
  );

  const { green, yellow, red } = context.colors;
  const lines = formatPlan(plan, { '+': green, '~': yellow, '-': red }).map((line) => `${line}\n`);
  (context.options.json ? io.stderr : io.stdout).write(lines.join(''));
  const undeclared = describeUndeclared(plan);
  if (undeclared !== undefined) context.note(undeclared);
  const isApplied = !dryRun && countChanges(plan) > 0;
  if (isApplied) {
    await context.confirm(`Apply ${describeCount(plan)} to ${(await context.readConnection()).url}?${describeDeletions(plan)}`);
    const nameWidth = Math.max(0, ...plan.changes.flatMap(({ files }) => files.map(({ name }) => name.length)));
    await executePlan(client, plan, {
      retryRateLimited,
      etags,
      note: (line) => context.note(line),
      startUpload: (name) => new UploadProgress(context, name, nameWidth),
    });
  }
  context.print({ ...plan, applied: isApplied }, describeEnd(plan, isApplied));
  if (exitCode && countChanges(plan) > 0)
    throw new CliError('drift', 'The server differs from the file. Run it without --dry-run to change the server.');
}

async function readText(file: string, { stdin }: Io): Promise<string> {
  if (file === '-') return text(stdin);
  return readFile(file, 'utf8').catch(({ code }: NodeJS.ErrnoException) => {
    throw new CliError('usage', `${file} can't be read (${code}). Name the file with -f, or write one with "latchkey export".`);
  });
}

async function reportProblems<T>(context: Context, run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (err) {
    if (!(err instanceof DeclarationError)) throw err;
    for (const problem of err.message.split('\n')) context.note(problem);
    throw new CliError('usage', 'Nothing was changed. Correct this and run the command again.');
  }
}

function describeEnd(plan: Plan, isApplied: boolean): string {
  const count = describeCount(plan);
  if (countChanges(plan) === 0) return 'No changes.';
  return isApplied
    ? `${count} applied.`
    : `${count}. Run without --dry-run to apply ${countChanges(plan) === 1 ? 'it' : 'them'}.`;
}

export async function exportState(context: Context, { schema = false }: { readonly schema?: boolean }): Promise<void> {
  const { io, options } = context;
  if (schema) {
    io.stdout.write(`${JSON.stringify(declarationSchema(), null, 2)}\n`);
    return;
  }
  const state = await readState(await context.client(), { retryRateLimited: createRateLimitRetry((line) => context.note(line)) });
  if (options.json) context.print(state, '');
  else io.stdout.write(formatDeclaration(state));
}
