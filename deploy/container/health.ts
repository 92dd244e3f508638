import { readFileSync } from 'node:fs';
import { get } from 'node:http';

// The health check of a container, whose image has no curl. Ends with 0 or 1.
//
//     node deploy/container/health.ts [healthz|readyz]
//
// It imports nothing of ours, as it runs every few seconds.

/** Longer than a probe that waits for a dependency, and shorter than the engine's limit. */
const TIMEOUT_MS = 4_000;

/** Ports of probes unless PORT is set. */
const DEFAULT_PORTS: Record<string, string> = {
  gateway: '8080',
  apps: '8082',
  identity: '8083',
  files: '8084',
  realtime: '8085',
};

/** The service is process 1 of its container. */
function defaultPort(): string | undefined {
  const [, service = ''] = /services\/([a-z]+)\/src\/main\.ts/.exec(readFileSync('/proc/1/cmdline', 'utf8')) ?? [];
  return DEFAULT_PORTS[service];
}

function end(problem?: string): void {
  if (problem) process.stderr.write(`${problem}\n`);
  process.exitCode = problem ? 1 : 0;
}

const path = `/${process.argv[2] ?? 'healthz'}`;

function ask(port: string): void {
  const request = get({ host: '127.0.0.1', port, path, timeout: TIMEOUT_MS }, (response) => {
    response.resume();
    end(response.statusCode === 200 ? undefined : `${path} answered ${response.statusCode}.`);
  });
  request.on('timeout', () => request.destroy(new Error('no answer in time')));
  request.on('error', (err) => end(`${path}: ${err.message}`));
}

const { PORT, METRICS_PORT, SERVICE_TLS_CERT_FILE } = process.env;
// With TLS between services, PORT asks for a certificate.
const port = SERVICE_TLS_CERT_FILE ? METRICS_PORT : PORT || defaultPort();
if (port) ask(port);
else end(SERVICE_TLS_CERT_FILE ? 'METRICS_PORT is required for health checks with TLS.' : 'No service runs here.');
