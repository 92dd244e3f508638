import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { eventually } from '@latchkey/testkit/eventually';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { onBehalfOf } from '../call-origin.ts';
import { createLogger } from '../logger.ts';
import { memoryLogger } from '../testing/memory-logger.ts';
import { OpenTelemetryTracer } from './open-telemetry.ts';
import { samplerOf } from './sampler.ts';
import { readTracingConfig, type TracingConfig } from './settings.ts';
import { activeTracer, inSpan, traceWith } from './tracer.ts';

const PARENT = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
const UNSAMPLED = PARENT.replace(/01$/, '00');

/** A collector that takes whatever comes and never answers. */
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

const traceOf = (traceparent: string) => traceparent.split('-')[1];
const flagsOf = (traceparent: string) => traceparent.split('-')[3];

describe('spans', () => {
  it('are none while nobody asks for them', async () => {
    expect(activeTracer()).toBeUndefined();
    expect(await inSpan({ name: 'test', kind: 'internal' }, async (span) => span)).toBeUndefined();
  });

  it('are of the trace of a trusted peer, or of one of their own beside a link', async () => {
    const tracer = new OpenTelemetryTracer('test', config, memoryLogger().logger);
    expect(traceOf(tracer.start({ name: 'a', kind: 'server', parent: PARENT }).traceparent)).toBe(traceOf(PARENT));
    expect(flagsOf(tracer.start({ name: 'a', kind: 'server', parent: UNSAMPLED }).traceparent)).toBe('00');
    const active = tracer.start({ name: 'a', kind: 'server', parent: PARENT });
    for (const given of [PARENT, UNSAMPLED, 'nonsense', '']) {
      const linked = tracer.within(active, () => tracer.start({ name: 'a', kind: 'server', link: given }));
      expect([traceOf(linked.traceparent) === traceOf(PARENT), flagsOf(linked.traceparent)]).toEqual([false, '01']);
    }
    await tracer.stop();
  });

  it('are taken as the sampler says, which a client has no say in', async () => {
    const tracer = new OpenTelemetryTracer(
      'test',
      { ...config, OTEL_TRACES_SAMPLER: 'parentbased_always_off' },
      memoryLogger().logger,
    );
    expect(flagsOf(tracer.start({ name: 'a', kind: 'server', link: PARENT }).traceparent)).toBe('00');
    expect(flagsOf(tracer.start({ name: 'a', kind: 'server', parent: PARENT }).traceparent)).toBe('01');
    await tracer.stop();
    const ratio = samplerOf({ OTEL_TRACES_SAMPLER: 'parentbased_traceidratio', OTEL_TRACES_SAMPLER_ARG: 0.25 });
    expect(ratio.toString()).toContain('TraceIdRatioBased{0.25}');
  });
});

it('a collector that never answers costs dropped spans and one log line, which belongs to no request', async () => {
  const lines: Array<Record<string, unknown>> = [];
  const logger = createLogger('test', 'info', { write: (text) => void lines.push(JSON.parse(text)) });
  const tracer = new OpenTelemetryTracer('test', config, logger);
  traceWith(tracer);
  const startedAt = performance.now();
  const lose = async () => {
    for (let i = 0; i < 5_000; i += 1) await inSpan({ name: 'lost', kind: 'internal' }, async () => undefined);
  };
  await onBehalfOf('r1', () => inSpan({ name: 'request', kind: 'server' }, lose));
  expect(performance.now() - startedAt).toBeLessThan(5_000);
  await eventually(() => expect(requests).toBeGreaterThan(1));
  await eventually(() => expect(lines.filter(({ msg }) => msg === 'traces are not taken')).toHaveLength(1));
  await tracer.stop();
  expect(lines.filter(({ msg }) => msg === 'traces are not taken')).toHaveLength(1);
  expect(Object.keys(lines[0] ?? {})).toEqual(['level', 'time', 'service', 'pid', 'reason', 'msg']);
});

it('a stop waits for the last spans for two seconds at most', async () => {
  process.env.OTEL_EXPORTER_OTLP_TIMEOUT = '20000';
  const tracer = new OpenTelemetryTracer('test', config, memoryLogger().logger);
  tracer.start({ name: 'last', kind: 'internal' }).end();
  const stoppedAt = performance.now();
  await tracer.stop();
  const took = performance.now() - stoppedAt;
  expect([took > 1_900, took < 3_000]).toEqual([true, true]);
});
