import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { eventually } from '@latchkey/testkit/eventually';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { onBehalfOf } from '../log/request-context.ts';
import { memoryLogger } from '../testing/memory-logger.ts';
import { createSampler, startTracing } from './export-traces.ts';
import { readTracingConfig, type TracingConfig } from './settings.ts';
import { activeTracer, formatTraceparent, inSpan, type Span, type Tracer } from './tracing.ts';

const PARENT = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
const UNSAMPLED = PARENT.replace(/01$/, '00');

/** A collector that accepts requests and never responds. */
let collector: Server;
let requests = 0;
let config: TracingConfig;
beforeAll(async () => {
  collector = createServer(() => {
    requests += 1;
  });
  await new Promise<void>((resolve) => collector.listen(0, '127.0.0.1', resolve));
  process.env.OTEL_EXPORTER_OTLP_ENDPOINT = `http://127.0.0.1:${(collector.address() as AddressInfo).port}`;
  process.env.OTEL_EXPORTER_OTLP_TIMEOUT = '300';
  const env = {
    ...process.env,
    OTEL_BSP_MAX_QUEUE_SIZE: '50',
    OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '10',
    OTEL_BSP_SCHEDULE_DELAY: '50',
  };
  config = readTracingConfig(env) as TracingConfig;
});
afterAll(() => collector.closeAllConnections());

const traceOf = (span: Span) => formatTraceparent(span).split('-')[1];
const flagsOf = (span: Span) => formatTraceparent(span).split('-')[3];

it('creates no span unless traces are wanted', async () => {
  expect(activeTracer()).toBeUndefined();
  expect(await inSpan({ name: 'test', kind: 'internal' }, async (span) => span)).toBeUndefined();
});

describe('a span', () => {
  it("continues a trusted peer's trace, and starts a new one for an untrusted client's", async () => {
    const stop = startTracing('test', config, memoryLogger().logger);
    const tracer = activeTracer() as Tracer;
    expect(traceOf(tracer.start({ name: 'a', kind: 'server', parent: PARENT }))).toBe(PARENT.split('-')[1]);
    expect(flagsOf(tracer.start({ name: 'a', kind: 'server', parent: UNSAMPLED }))).toBe('00');
    const active = tracer.start({ name: 'a', kind: 'server', parent: PARENT });
    for (const given of [PARENT, UNSAMPLED, 'nonsense', '']) {
      const linked = tracer.within(active, () => tracer.start({ name: 'a', kind: 'server', link: given }));
      expect([traceOf(linked) === PARENT.split('-')[1], flagsOf(linked)]).toEqual([false, '01']);
    }
    await stop();
  });

  it('is sampled as OTEL_TRACES_SAMPLER says, whatever a client sends', async () => {
    const stop = startTracing('test', { ...config, OTEL_TRACES_SAMPLER: 'parentbased_always_off' }, memoryLogger().logger);
    const tracer = activeTracer() as Tracer;
    expect(flagsOf(tracer.start({ name: 'a', kind: 'server', link: PARENT }))).toBe('00');
    expect(flagsOf(tracer.start({ name: 'a', kind: 'server', parent: PARENT }))).toBe('01');
    await stop();
    const ratio = createSampler({ OTEL_TRACES_SAMPLER: 'parentbased_traceidratio', OTEL_TRACES_SAMPLER_ARG: 0.25 });
    expect(ratio.toString()).toContain('TraceIdRatioBased{0.25}');
  });
});

it('drops spans and logs one line, without a request id, while the collector does not respond', async () => {
  const { logger, lines, messages } = memoryLogger();
  const stop = startTracing('test', config, logger);
  const startedAt = performance.now();
  const lose = async () => {
    for (let i = 0; i < 5_000; i += 1) await inSpan({ name: 'lost', kind: 'internal' }, async () => undefined);
  };
  await onBehalfOf('r1', () => inSpan({ name: 'request', kind: 'server' }, lose));
  expect(performance.now() - startedAt).toBeLessThan(5_000);
  await eventually(() => expect(requests).toBeGreaterThan(1));
  await eventually(() => expect(messages()).toEqual(['exporting traces failed']));
  await stop();
  expect(lines).toEqual([expect.not.objectContaining({ requestId: 'r1' })]);
});

it('waits for the last spans for two seconds at most when it stops', async () => {
  process.env.OTEL_EXPORTER_OTLP_TIMEOUT = '20000';
  const stop = startTracing('test', config, memoryLogger().logger);
  activeTracer()?.start({ name: 'last', kind: 'internal' }).end();
  const stoppedAt = performance.now();
  await stop();
  const took = performance.now() - stoppedAt;
  expect([took > 1_900, took < 3_000]).toEqual([true, true]);
});
