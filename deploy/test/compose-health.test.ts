import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { promisify } from 'node:util';
import { describe, expect, it, onTestFinished } from 'vitest';
import { ROOT, readComposeFile } from './compose/compose-file.ts';
import { makeEnv } from './compose/example-env.ts';
import { readAsService, SERVICES } from './compose/services.ts';

const HEALTH = `${ROOT}deploy/container/health.ts`;

/** Starts what answers probes as it is told, and gives the port. */
async function startProbed(statusOf: (path: string) => number | undefined): Promise<number> {
  const server = createServer((req, res) => {
    const status = statusOf(req.url ?? '');
    if (status !== undefined) res.writeHead(status).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

/** Runs the check as a container engine does. */
async function check(ports: number | Record<string, string>, ...args: string[]): Promise<{ code: number; problem: string }> {
  const env = typeof ports === 'number' ? { PORT: String(ports) } : ports;
  const run = promisify(execFile)(process.execPath, [HEALTH, ...args], { env });
  return run.then(
    () => ({ code: 0, problem: '' }),
    (err: { code: number; stderr: string }) => ({ code: err.code, problem: err.stderr.trim() }),
  );
}

describe('the health check of a container', () => {
  it('is content with a process that lives, and with one that is ready where that is asked', async () => {
    const port = await startProbed((path) => (path === '/healthz' || path === '/readyz' ? 200 : 404));
    expect(await check(port)).toEqual({ code: 0, problem: '' });
    expect(await check(port, 'readyz')).toEqual({ code: 0, problem: '' });
  });

  it('is not with one that lives and is not ready', async () => {
    const port = await startProbed((path) => (path === '/healthz' ? 200 : 503));
    expect(await check(port, 'healthz')).toEqual({ code: 0, problem: '' });
    expect(await check(port, 'readyz')).toEqual({ code: 1, problem: '/readyz answered 503.' });
  });

  it('is not with one that is gone, and ends by itself where one hangs', async () => {
    expect(await check(1)).toEqual({ code: 1, problem: expect.stringContaining('ECONNREFUSED') });
    const port = await startProbed(() => undefined);
    expect(await check(port)).toEqual({ code: 1, problem: '/healthz: no answer in time' });
  });

  it('asks at METRICS_PORT with TLS between services', async () => {
    const port = await startProbed(() => 200);
    const env = { PORT: '1', SERVICE_TLS_CERT_FILE: '/tls.crt' };
    expect(await check({ ...env, METRICS_PORT: String(port) }, 'readyz')).toEqual({ code: 0, problem: '' });
    const problem = 'METRICS_PORT is required for health checks with TLS.';
    expect(await check(env)).toEqual({ code: 1, problem });
  });

  it('knows the port of each service where none is set', () => {
    const text = readFileSync(HEALTH, 'utf8');
    const compose = readComposeFile(makeEnv());
    for (const service of SERVICES) {
      const { config } = readAsService(service, compose.services[service]?.environment ?? {});
      expect(text).toMatch(new RegExp(`[ {]${service}: '${config.PORT}'`));
    }
  });
});
