import type { DiskReporter } from '../disk-reporter.ts';
import type { ListenAddress } from '../listen-address.ts';
import type { LogSink } from '../log-sink.ts';
import type { Reporter } from '../reporter.ts';
import type { Secrets } from '../secrets.ts';
import type { Servers } from '../servers.ts';
import type { StopStack } from '../stop-stack.ts';

/** What a shape of the deployment is started with. */
export interface ShapeOptions {
  /** Settings that go on to the services as they are. */
  readonly env: NodeJS.ProcessEnv;
  readonly address: ListenAddress;
  /** Where clients open live connections. */
  readonly realtimeAddress: ListenAddress;
  readonly servers: Servers;
  readonly secrets: Secrets;
  /** Where clients reach the gateway. */
  readonly publicUrl: string;
  /** Folder of the files on disk. */
  readonly objectsDir: string;
  /** How long a service may take to stop, uploads included, in milliseconds. */
  readonly stopTimeoutMs: number;
  /** How long the realtime service may, in milliseconds. */
  readonly realtimeStopTimeoutMs: number;
  readonly reporter: Reporter;
  readonly logs: LogSink;
  readonly stops: StopStack;
  /** Throws when the start is no longer wanted. */
  readonly checkWanted: () => void;
  readonly disks: DiskReporter;
  /** Called when a service can't be kept running. */
  readonly onGiveUp: (line: string) => void;
}

/** Where a service answers other services. */
export interface InternalAddress {
  /** `host:port` for gRPC. */
  readonly grpc: string;
  /** URL for Connect and gRPC-Web. */
  readonly connect: string;
}

/** The services, running. */
export interface RunningShape {
  /** Pids of the processes that the services have of their own. */
  pids(): Record<string, number>;
  /** Where other services call each; empty where the services are called directly. */
  readonly internal: Readonly<Record<string, InternalAddress>>;
  /** Where each process serves its metrics; empty where nobody asked for them. */
  readonly metrics: Readonly<Record<string, string>>;
}

/** Where metrics are read, as this machine reaches it. */
export function metricsUrl(port: number): string {
  return `http://127.0.0.1:${port}/metrics`;
}
