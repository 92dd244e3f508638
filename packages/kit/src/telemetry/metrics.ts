import type { Counter as PromCounter, Histogram as PromHistogram, Registry } from 'prom-client';
import { within } from '../concurrency/within.ts';

/** Options of a metric. Names begin with `latchkey_` and end in their unit. */
export interface InstrumentOptions {
  readonly name: string;
  readonly help: string;
  /** Label names. Values come from a small set: never an id, an address or client input. */
  readonly labels?: readonly string[];
}

export type Reading = readonly [value: number, ...labels: string[]];

export type Observe = (value: number) => void;

export type Exposition = Awaited<ReturnType<typeof startMeasuring>>;

type Definition = (library: typeof import('prom-client'), registry: Registry) => void;

const definitions: Definition[] = [];
let started: Parameters<Definition> | undefined;

function define(create: Definition): void {
  definitions.push(create);
  if (started) create(...started);
}

const describe = ({ name, help, labels = [] }: InstrumentOptions, registry: Registry) => {
  return { name, help, labelNames: [...labels], registers: [registry] };
};

/**
 * Starts recording: without this call prom-client is not loaded and metrics record nothing. Call it
 * before services are composed.
 */
export async function startMeasuring(service: string) {
  const library = await import('prom-client');
  const registry = new library.Registry();
  library.collectDefaultMetrics({ register: registry, prefix: 'latchkey_' });
  started = [library, registry];
  for (const create of definitions) create(library, registry);
  const info = { name: 'latchkey_process_info', help: 'The process, always 1.', labels: ['service', 'node'] };
  new library.Gauge(describe(info, registry)).labels(service, process.version).set(1);
  const render = async () => {
    await Promise.all([...probes].map((refresh) => refresh()));
    return registry.metrics();
  };
  let rendering: Promise<string> | undefined;
  return {
    contentType: registry.contentType as string,
    // Concurrent scrapes share one rendering.
    render(): Promise<string> {
      rendering ??= render().finally(() => {
        rendering = undefined;
      });
      return rendering;
    },
  };
}

/** True if this process records metrics. It does not change once services are composed. */
export function isMeasuring(): boolean {
  return started !== undefined;
}

/** A number that only grows. Without labels it is exposed as 0 from the start. */
export class Counter {
  #counter: PromCounter | undefined;

  constructor(options: InstrumentOptions) {
    define(({ Counter: Prom }, registry) => {
      this.#counter = new Prom(describe(options, registry));
    });
  }

  add(by: number, ...labels: string[]): void {
    this.#counter?.labels(...labels).inc(by);
  }
}

/** A histogram with fixed buckets: upper bounds in the unit of the name. */
export class Histogram {
  #histogram: PromHistogram | undefined;

  constructor(options: InstrumentOptions & { readonly buckets: readonly number[] }) {
    define(({ Histogram: Prom }, registry) => {
      this.#histogram = new Prom({ ...describe(options, registry), buckets: [...options.buckets] });
    });
  }

  observe(value: number, ...labels: string[]): void {
    this.#histogram?.labels(...labels).observe(value);
  }

  /** Resolves label values once, for hot paths; undefined unless the process records metrics. */
  child(...labels: string[]): Observe | undefined {
    const child = this.#histogram?.labels(...labels);
    return child && ((value) => child.observe(value));
  }
}

export class Gauge {
  readonly #sources = new Set<() => Iterable<Reading>>();

  constructor(options: InstrumentOptions) {
    const sources = this.#sources;
    define(({ Gauge: Prom }, registry) => {
      new Prom({
        ...describe(options, registry),
        collect() {
          this.reset();
          // Without labels, a reset leaves a zero that no source has reported.
          if (!options.labels) this.remove();
          for (const source of sources) for (const [value, ...labels] of source()) this.labels(...labels).inc(value);
        },
      });
    });
  }

  /** Adds a source; values with equal labels are added up. Returns a function that removes it. */
  watch(source: () => Iterable<Reading>): () => void {
    this.#sources.add(source);
    return () => void this.#sources.delete(source);
  }
}

/** Less than half of the shortest usual scrape time-out. */
const PROBE_TIMEOUT_MS = 800;
const PROBE_AGE_MS_MAX = 5_000;

const probes = new Set<() => Promise<void>>();

const probesUp = new Gauge({
  name: 'latchkey_probe_up',
  help: '1 if the last probe query succeeded; otherwise 0, and its gauges are absent.',
  labels: ['probe'],
});

/**
 * Reads a value for gauges with a query: at most one at a time, which a scrape waits 800 ms for at
 * most, as the database or Redis may be frozen. Returns a function that removes the sources.
 *
 * @param ageMsMax how long a value is reused, in milliseconds
 */
export function watchProbe<T>(
  name: string,
  query: () => Promise<T>,
  sources: ReadonlyArray<readonly [Gauge, (value: T) => Iterable<Reading>]>,
  ageMsMax = PROBE_AGE_MS_MAX,
): () => void {
  let value: T | undefined;
  let readAt = Number.NEGATIVE_INFINITY;
  let reading: Promise<void> | undefined;
  const read = async () => {
    try {
      value = await query();
      readAt = performance.now();
    } catch {
      value = undefined;
    } finally {
      reading = undefined;
    }
  };
  const refresh = async () => {
    if (performance.now() - readAt < ageMsMax) return;
    reading ??= read();
    const current = reading;
    await within(PROBE_TIMEOUT_MS, current);
    // While a read hangs, the value is unknown.
    if (reading === current) value = undefined;
  };
  probes.add(refresh);
  const unwatch = [
    probesUp.watch(() => [[value === undefined ? 0 : 1, name]]),
    ...sources.map(([gauge, readings]) => gauge.watch(() => (value === undefined ? [] : readings(value)))),
  ];
  return () => {
    probes.delete(refresh);
    for (const end of unwatch) end();
  };
}
