import { createClient } from '@connectrpc/connect';
import { ApplicationService } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { expect, it, onTestFinished } from 'vitest';
import { readTracingConfig, type TracingConfig } from '../metrics/settings.ts';
import { memoryLogger } from '../testing/memory-logger.ts';
import { CREDENTIAL, startTestServer, testRoute } from '../testing/servers.ts';
import { startTracing } from '../tracing/open-telemetry.ts';
import { activeTracer, inSpan } from '../tracing/tracer.ts';
import { createServiceTransport } from './transport.ts';

const traceIdOf = (traceparent: string | undefined) => traceparent?.split('-')[1];

it.each(['parentbased_always_on', 'always_on', 'traceidratio'])(
  'calls are a part of the trace that they are made in, and of none where there is none, with the sampler %s',
  async (OTEL_TRACES_SAMPLER) => {
    // Nobody takes the spans.
    const config = readTracingConfig({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9', OTEL_TRACES_SAMPLER });
    onTestFinished(startTracing('test', config as TracingConfig, memoryLogger().logger));
    const seen: Array<string | undefined> = [];
    const route = testRoute(ApplicationService, {
      async deleteApplication() {
        seen.push(traceIdOf(activeTracer()?.traceparent()));
        return {};
      },
    });
    const { url } = await startTestServer([route]);
    const transport = createServiceTransport(url, CREDENTIAL);
    onTestFinished(() => transport.close());
    const client = createClient(ApplicationService, transport);
    await client.deleteApplication({});
    const made = await inSpan({ name: 'test', kind: 'internal' }, async (span) => {
      await client.deleteApplication({});
      return traceIdOf(span?.traceparent);
    });
    expect(seen).toEqual([undefined, made]);
  },
);
