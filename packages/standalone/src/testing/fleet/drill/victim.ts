import { readFileSync } from 'node:fs';
import type { Fleet, FleetProcess, FleetService } from '../fleet.ts';

/** Tells who has worked most since it was asked first: of processes that hardly anybody calls, the loss of one says little. */
export function watchWork(fleet: Fleet): (service: FleetService) => FleetProcess {
  const before = new Map(fleet.processes.map((one) => [one, cpuTicksOf(one)]));
  const worked = (one: FleetProcess) => cpuTicksOf(one) - (before.get(one) ?? 0);
  return (service) => {
    const [first, ...others] = fleet.processesOf(service);
    if (!first) throw new Error(`There is no ${service}`);
    return others.reduce((busiest, one) => (worked(one) > worked(busiest) ? one : busiest), first);
  };
}

/** CPU time of a process since it began, in ticks of the kernel. */
function cpuTicksOf({ pid }: FleetProcess): number {
  // The second field, the name, may hold anything.
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /, '')
    .split(' ');
  return Number(fields[11]) + Number(fields[12]);
}
