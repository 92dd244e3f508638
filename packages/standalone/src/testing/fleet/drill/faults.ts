import type { FleetProcess, FleetService } from '../fleet.ts';
import type { World } from './world.ts';

/** Something that breaks, and how it is mended. */
export interface Fault {
  /** As the table names it, such as `apps killed`. */
  readonly name: string;
  /** One of whose processes it is about; none for a server. */
  readonly service?: FleetService;
  readonly breakIt: (world: World, victim: FleetProcess) => unknown;
  readonly mend: (world: World, victim: FleetProcess) => unknown;
}

/** What is done to a process. Frozen, it takes connections and answers nothing; so it does cut off, but then its probes answer. */
const WAYS: ReadonlyArray<Omit<Fault, 'service'>> = [
  { name: 'killed', breakIt: (_world, victim) => victim.kill(), mend: (_world, victim) => victim.start() },
  { name: 'frozen', breakIt: (_world, victim) => victim.freeze(), mend: (_world, victim) => victim.thaw() },
  {
    name: 'cut off',
    breakIt: ({ links }, { name }) => links.partition(name),
    mend: ({ links }, { name }) => links.restore(name),
  },
  { name: 'refusing', breakIt: ({ links }, { name }) => links.refuse(name), mend: ({ links }, { name }) => links.restore(name) },
];

const SERVICES = ['gateway', 'apps', 'identity', 'files', 'realtime', 'avatar-worker'] as const;

const ofProcesses = SERVICES.flatMap((service) => {
  // Nobody calls the worker.
  const ways = service === 'avatar-worker' ? WAYS.slice(0, -1) : WAYS;
  return ways.map((way): Fault => ({ ...way, service, name: `${service} ${way.name}` }));
});

const ofServers = (['redis', 'postgres'] as const).flatMap((which): Fault[] => {
  const name = which === 'redis' ? 'Redis' : 'PostgreSQL';
  return [
    { name: `${name} stopped`, breakIt: ({ servers }) => servers[which].stop(), mend: ({ servers }) => servers[which].start() },
    { name: `${name} killed`, breakIt: ({ servers }) => servers[which].kill(), mend: ({ servers }) => servers[which].start() },
    { name: `${name} frozen`, breakIt: ({ servers }) => servers[which].freeze(), mend: ({ servers }) => servers[which].thaw() },
  ];
});

/** All that a drill goes through. */
export const FAULTS: readonly Fault[] = [...ofProcesses, ...ofServers];
