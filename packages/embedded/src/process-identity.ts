import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';

/** A process. The kernel reuses a pid, but not together with the time of the start. */
export interface ProcessIdentity {
  readonly pid: number;
  /** In a form of the platform: only for comparing. */
  readonly startedAt: string;
}

const hasProc = existsSync('/proc/self/stat');

/** @returns undefined where no process has this pid, or only a zombie */
export function identifyProcess(pid: number): ProcessIdentity | undefined {
  if (!Number.isSafeInteger(pid) || pid <= 0) return undefined;
  try {
    const startedAt = hasProc ? readStartFromProc(pid) : readStartFromPs(pid);
    return startedAt === undefined ? undefined : { pid, startedAt };
  } catch {
    return undefined;
  }
}

/** Whether this process still runs, and not another one with its pid. */
export function isRunning(identity: ProcessIdentity): boolean {
  return identifyProcess(identity.pid)?.startedAt === identity.startedAt;
}

/** @returns the program and its arguments; empty where no process has this pid */
export function readCommandLine(pid: number): string[] {
  try {
    if (hasProc) return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').filter(Boolean);
    return ps(pid, 'command=').split(/\s+/).filter(Boolean);
  } catch {
    return [];
  }
}

function readStartFromProc(pid: number): string | undefined {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  // The command before these fields may itself hold spaces and parentheses (proc(5)).
  const [state = '', ...fields] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  // Ticks count from the boot.
  const bootId = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  return 'ZX'.includes(state) ? undefined : `${bootId}/${fields[18]}`;
}

function readStartFromPs(pid: number): string | undefined {
  const [state = 'Z', ...start] = ps(pid, 'stat=,lstart=').trim().split(/\s+/);
  return state.startsWith('Z') ? undefined : start.join(' ');
}

function ps(pid: number, columns: string): string {
  const env = { ...process.env, LC_ALL: 'C' };
  return execFileSync('ps', ['-o', columns, '-p', String(pid)], { encoding: 'utf8', env, stdio: ['ignore', 'pipe', 'ignore'] });
}
