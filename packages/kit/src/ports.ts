import { ConfigError } from './config.ts';

/** A port that a process takes, and the setting that names it. */
export interface TakenPort {
  readonly name: string;
  readonly host: string;
  /** 0 where the system chooses, and undefined where there is none. */
  readonly port: number | undefined;
}

/** Addresses that stand for all of them. */
const ANY = new Set(['0.0.0.0', '::']);

/**
 * Sees that a process does not take a port twice.
 *
 * @throws ConfigError naming every pair of settings that does
 */
export function checkPorts(taken: readonly TakenPort[]): void {
  const problems = taken.flatMap((one, index) =>
    taken
      .slice(index + 1)
      .filter((other) => one.port && one.port === other.port && isSameHost(one.host, other.host))
      .map((other) => `${one.name} and ${other.name} must differ, and both are ${one.port}`),
  );
  if (problems.length > 0) throw new ConfigError(problems.join('\n'));
}

function isSameHost(a: string, b: string): boolean {
  return a === b || ANY.has(a) || ANY.has(b);
}

/** The ports of a process by its settings; those that it does not have are left out. */
export function portsOf(
  config: { readonly HOST: string } & Partial<Record<string, unknown>>,
  metrics: { readonly host: string; readonly port: number } | undefined,
): TakenPort[] {
  const { HOST: host, REALTIME_HOST: realtimeHost = host } = config;
  const own = ['PORT', 'GRPC_PORT', 'PROBE_PORT'].map((name) => ({ name, host, port: config[name] as number | undefined }));
  return [
    ...own,
    { name: 'REALTIME_PORT', host: realtimeHost as string, port: config.REALTIME_PORT as number | undefined },
    { name: 'METRICS_PORT', host: metrics?.host ?? host, port: metrics?.port },
  ];
}
