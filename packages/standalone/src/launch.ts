import type { DiskFullError } from '@latchkey/embedded/disk-full';
import type { ListenAddress } from './addresses.ts';
import type { LogSink } from './log-sink.ts';
import type { Reporter } from './reporter.ts';
import type { Secrets } from './secrets.ts';
import type { LauncherSettings } from './settings.ts';

/** One start of Latchkey: its settings, and what all parts of the start use. */
export interface Launch {
  readonly settings: LauncherSettings;
  readonly env: NodeJS.ProcessEnv;
  readonly dataDir: string;
  readonly objectsDir: string;
  readonly address: ListenAddress;
  readonly realtimeAddress: ListenAddress;
  readonly publicUrl: string;
  readonly secrets: Secrets;
  /** Limit of a service's stop, uploads included. */
  readonly stopTimeoutMs: number;
  readonly realtimeStopTimeoutMs: number;
  readonly reporter: Reporter;
  readonly logs: LogSink;
  readonly stops: AsyncDisposableStack;
  readonly signal: AbortSignal;
  readonly onDiskFull: (err: DiskFullError) => void;
  /** Called when a server or a service can't be kept running. */
  readonly onGiveUp: (line: string) => void;
}

export interface RunningShape {
  /**
   * Where other services call each: `host:port` for gRPC, a URL for Connect and gRPC-Web. Empty in
   * one process.
   */
  readonly internal: Readonly<Record<string, { readonly grpc: string; readonly connect: string }>>;
  /** Where each process serves its metrics; empty unless METRICS_PORT is set. */
  readonly metrics: Readonly<Record<string, string>>;
}

export function metricsUrl(port: number): string {
  return `http://127.0.0.1:${port}/metrics`;
}
