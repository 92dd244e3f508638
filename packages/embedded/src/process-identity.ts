import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';

/**
 * One process for as long as the machine runs. A pid alone is reused by the kernel; together with the moment the
 * process began it is not.
 */
export interface ProcessIdentity {
  readonly pid: number;
  /** When the process began, in a form of the platform's own: only good for comparing. */
  readonly startedAt: string;
}

const hasProc = existsSync('/proc/self/stat');

/** @returns who runs under this pid, or `undefined` when nobody does (a zombie counts as nobody). */
export function identifyProcess(pid: number): ProcessIdentity | undefined {
  if (!Number.isSafeInteger(pid) || pid <= 0) return undefined;
  const startedAt = hasProc ? startedAtFromProc(pid) : startedAtFromPs(pid);
  return startedAt === undefined ? undefined : { pid, startedAt };
}

/** Whether this very process still runs, and not another one that was given its pid. */
export function isRunning(identity: ProcessIdentity): boolean {
  return identifyProcess(identity.pid)?.startedAt === identity.startedAt;
}

/** @returns the command line of a process, one element an argument where the platform tells them apart. */
export function readCommandLine(pid: number): string[] {
  try {
    if (hasProc) return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').filter(Boolean);
    return ps(pid, 'command=').split(/\s+/).filter(Boolean);
  } catch {
    return [];
  }
}

function startedAtFromProc(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The second field is the command in parentheses and may itself hold spaces and parentheses (proc(5)).
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const state = fields[0];
    const startTicks = fields[19];
    if (state === 'Z' || state === 'X') return undefined;
    return `${bootId()}/${startTicks}`;
  } catch {
    return undefined;
  }
}

/** Ticks count from the boot, so that the same number after a reboot would otherwise look like the same process. */
function bootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  } catch {
    return '';
  }
}

function startedAtFromPs(pid: number): string | undefined {
  try {
    const line = ps(pid, 'stat=,lstart=').trim();
    return line === '' || line.startsWith('Z') ? undefined : line.replace(/^\S+\s+/, '');
  } catch {
    return undefined;
  }
}

function ps(pid: number, columns: string): string {
  return execFileSync('ps', ['-o', columns, '-p', String(pid)], {
    encoding: 'utf8',
    env: { ...process.env, LC_ALL: 'C' },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
}
