import { createClient } from '@connectrpc/connect';
import { ApplicationService, DeleteApplicationResponseSchema } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { eventually } from '@latchkey/testkit/eventually';
import { expect, it, onTestFinished } from 'vitest';
import { defineErrors } from '../errors/errors.ts';
import { startTracing } from '../telemetry/export-traces.ts';
import { startMeasuring } from '../telemetry/metrics.ts';
import { readTracingConfig, type TracingConfig } from '../telemetry/settings.ts';
import { activeTracer, formatTraceparent, inSpan } from '../telemetry/tracing.ts';
import { memoryLogger } from '../testing/memory-logger.ts';
import { AUTHORIZATION, heldRoute, openTransport, startTestServer, testRoute } from '../testing/servers.ts';
import { bodyRoute } from './server/http-route.ts';

const exposition = await startMeasuring('test');

it('counts the calls that are rejected as too many', async () => {
  const { route, signals, release } = heldRoute();
  const { url } = await startTestServer([route], { limits: { calls: 1 } });
  const client = createClient(ApplicationService, openTransport(url));
  const held = client.deleteApplication({});
  await eventually(() => signals.length === 1);
  for (let i = 0; i < 3; i += 1) await expect(client.deleteApplication({})).rejects.toThrow();
  release();
  await held;
  await client.deleteApplication({});
  expect(await exposition.render()).toMatch(/^latchkey_rpc_overload_rejections_total 3$/m);
});

it('measures bodies and calls by the code that the caller gets', async () => {
  const errors = defineErrors({ too_much: { kind: 'too_large', message: 'It is too much' } });
  const endings: Readonly<Record<string, () => Promise<object>>> = {
    well: async () => ({}),
    rejected: () => Promise.reject(errors.too_much()),
    broken: () => Promise.reject(new Error('a defect')),
  };
  const httpRoute = bodyRoute({
    path: '/body',
    output: DeleteApplicationResponseSchema,
    handle: async (req) => endings[String(req.headers['x-ending'])]?.() ?? {},
  });
  const route = testRoute(ApplicationService, {
    createApplication: async (_req, { requestHeader }) => endings[requestHeader.get('x-ending') ?? '']?.() ?? {},
  });
  const { url } = await startTestServer([route], { httpRoutes: [httpRoute] });
  const client = createClient(ApplicationService, openTransport(url));
  for (const ending of Object.keys(endings)) {
    const headers = { 'x-ending': ending };
    await fetch(`${url}/body`, { method: 'PUT', headers: { ...headers, authorization: AUTHORIZATION } });
    await client.createApplication({}, { headers }).catch(() => undefined);
  }
  const text = await exposition.render();
  const method = `service="${ApplicationService.typeName}",method="CreateApplication"`;
  for (const labels of [
    'latchkey_body_duration_seconds_count{route="PUT /body"',
    `latchkey_rpc_server_duration_seconds_count{${method}`,
    `latchkey_rpc_client_duration_seconds_count{${method}`,
  ]) {
    for (const code of ['ok', 'resource_exhausted', 'internal']) expect(text).toContain(`${labels},code="${code}"} 1`);
  }
});

it('calls join the trace that they are made in, and start none', async () => {
  // Nothing receives the spans. This sampler ignores the parent.
  const config = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9', OTEL_TRACES_SAMPLER: 'always_on' };
  onTestFinished(startTracing('test', readTracingConfig(config) as TracingConfig, memoryLogger().logger));
  const traceId = (traceparent: string | undefined) => traceparent?.split('-')[1];
  const seen: Array<string | undefined> = [];
  const route = testRoute(ApplicationService, {
    async deleteApplication() {
      seen.push(traceId(activeTracer()?.traceparent()));
      return {};
    },
  });
  const { url } = await startTestServer([route]);
  const client = createClient(ApplicationService, openTransport(url));
  await client.deleteApplication({});
  const made = await inSpan({ name: 'test', kind: 'internal' }, async (span) => {
    await client.deleteApplication({});
    return traceId(span && formatTraceparent(span));
  });
  expect(seen).toEqual([undefined, made]);
});
