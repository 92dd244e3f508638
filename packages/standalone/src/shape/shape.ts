import type { DiskReporter } from '../disk-reporter.ts';
import type { ListenAddress } from '../listen-address.ts';
import type { LogSink } from '../log-sink.ts';
import type { Reporter } from '../reporter.ts';
import type { Secrets } from '../secrets.ts';
import type { Servers } from '../servers.ts';

/** What the services are started with, in one process or in several. */
export interface ShapeOptions {
  /** Settings for the services. */
  readonly env: NodeJS.ProcessEnv;
  readonly address: ListenAddress;
  /** Where clients open live connections. */
  readonly realtimeAddress: ListenAddress;
  readonly servers: Servers;
  readonly secrets: Secrets;
  /** Where clients reach the gateway. */
  readonly publicUrl: string;
  readonly objectsDir: string;
  /** Limit of a service's stop, uploads included. */
  readonly stopTimeoutMs: number;
  readonly realtimeStopTimeoutMs: number;
  readonly reporter: Reporter;
  readonly logs: LogSink;
  readonly stops: AsyncDisposableStack;
  /** Throws when the start was cancelled. */
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
  /** Where other services call each; empty in one process. */
  readonly internal: Readonly<Record<string, InternalAddress>>;
  /** Where each process serves its metrics; empty unless METRICS_PORT is set. */
  readonly metrics: Readonly<Record<string, string>>;
}

/** Where metrics are read on this machine. */
export function metricsUrl(port: number): string {
  return `http://127.0.0.1:${port}/metrics`;
}
