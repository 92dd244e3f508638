import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { readCommandLine } from '@latchkey/embedded/process/processes';

/** Servers whose working folder is in a data folder, as [name, pid]. */
export function findServerProcesses(dataDir: string): Array<[name: string, pid: number]> {
  const found = readdirSync('/proc')
    .map(Number)
    .filter((pid) => pid > 0)
    .flatMap((pid): Array<[string, number]> => {
      const [program = ''] = readCommandLine(pid);
      if (!workingDir(pid)?.startsWith(`${dataDir}/`)) return [];
      if (program.endsWith('/postgres')) return [['postgres', pid]];
      return program.includes('redis-server') || program.includes('valkey-server') ? [['redis', pid]] : [];
    });
  // A process that PostgreSQL has just forked has the same name for a moment.
  const pids = new Set(found.map(([, pid]) => pid));
  return found.filter(([, pid]) => !pids.has(parentOf(pid) ?? 0));
}

/** Direct children of a process that run a service, as [name, pid]. */
export function findServiceProcesses(launcherPid: number): Array<[name: string, pid: number]> {
  return readdirSync('/proc')
    .map(Number)
    .filter((pid) => pid > 0)
    .flatMap((pid): Array<[string, number]> => {
      const name = /services\/(\w+)\/src\/main\.ts/.exec(readCommandLine(pid).join(' '))?.[1];
      return name && parentOf(pid) === launcherPid ? [[name, pid]] : [];
    });
}

function workingDir(pid: number): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/cwd`);
  } catch {
    return undefined;
  }
}

function parentOf(pid: number): number | undefined {
  try {
    return Number(/\) \S (\d+)/.exec(readFileSync(`/proc/${pid}/stat`, 'utf8'))?.[1]);
  } catch {
    return undefined;
  }
}
