import type { Counter as PromCounter, Histogram as PromHistogram, Registry } from 'prom-client';
import { within } from '../process/within.ts';

/** Options that all instruments share. Names begin with `latchkey_` and end in their unit. */
export interface InstrumentOptions {
  readonly name: string;
  /** One sentence, which Prometheus shows beside the name. */
  readonly help: string;
  /** Label names. Their values come from a small set: never an id, an address or client input. */
  readonly labels?: readonly string[];
}

/** A value and its label values, in the order of the label names. */
export type Reading = readonly [value: number, ...labels: string[]];

/** Records values under fixed label values. */
export type Observe = (value: number) => void;

/** The metrics of a process in Prometheus' text format. */
export interface Exposition {
  readonly contentType: string;
  render(): Promise<string>;
}

type Library = Pick<typeof import('prom-client'), 'Counter' | 'Histogram' | 'Gauge'> & { readonly registry: Registry };

const definitions: Array<(library: Library) => void> = [];
let library: Library | undefined;

function define(create: (library: Library) => void): void {
  definitions.push(create);
  if (library) create(library);
}

const describe = ({ name, help, labels = [] }: InstrumentOptions, { registry }: Library) => ({
  name,
  help,
  labelNames: [...labels],
  registers: [registry],
});

/**
 * Starts recording: without this call prom-client is not loaded and instruments record nothing.
 * Call it before services are composed.
 *
 * @param service label of the metric `latchkey_process_info`
 */
export async function startMeasuring(service: string): Promise<Exposition> {
  const { Registry, collectDefaultMetrics, ...instruments } = await import('prom-client');
  const registry = new Registry();
  library = { ...instruments, registry };
  collectDefaultMetrics({ register: registry, prefix: 'latchkey_' });
  for (const create of definitions) create(library);
  const info = { name: 'latchkey_process_info', help: 'The process, always 1.', labels: ['service', 'node'] };
  new instruments.Gauge(describe(info, library)).labels(service, process.version).set(1);
  let rendering: Promise<string> | undefined;
  const render = async () => {
    await Promise.all([...probes].map((probe) => probe.refresh()));
    return registry.metrics();
  };
  return {
    contentType: registry.contentType,
    // Concurrent scrapes share one rendering.
    render: () => {
      rendering ??= render().finally(() => {
        rendering = undefined;
      });
      return rendering;
    },
  };
}

/** Whether this process records metrics. It does not change once services are composed. */
export function isMeasuring(): boolean {
  return library !== undefined;
}

/** A number that only grows. Without labels it is exposed as 0 from the start. */
export class Counter {
  #counter: PromCounter | undefined;

  constructor(options: InstrumentOptions) {
    define((prom) => {
      this.#counter = new prom.Counter(describe(options, prom));
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
    define((prom) => {
      this.#histogram = new prom.Histogram({ ...describe(options, prom), buckets: [...options.buckets] });
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

/** A value that is read at each scrape. */
export class Gauge {
  readonly #sources = new Set<() => Iterable<Reading>>();

  constructor(options: InstrumentOptions) {
    const sources = this.#sources;
    define((prom) => {
      new prom.Gauge({
        ...describe(options, prom),
        collect() {
          this.reset();
          // Without labels, a reset leaves a zero that no source has reported.
          if (!options.labels) this.remove();
          for (const source of sources) for (const [value, ...labels] of source()) this.labels(...labels).inc(value);
        },
      });
    });
  }

  /**
   * Adds a synchronous source; values with equal labels are added up. For values that take a query,
   * see {@link Probe}.
   *
   * @returns removes the source
   */
  watch(source: () => Iterable<Reading>): () => void {
    this.#sources.add(source);
    return () => void this.#sources.delete(source);
  }
}

/** Less than half of the shortest usual scrape time-out. */
const PROBE_TIMEOUT_MS = 800;
const PROBE_AGE_MS_MAX = 5_000;

const probes = new Set<Probe<unknown>>();

const probesUp = new Gauge({
  name: 'latchkey_probe_up',
  help: 'Whether what a query is needed for could be read; what it reads is absent otherwise.',
  labels: ['probe'],
});

/** Options of {@link Probe}. */
export interface ProbeOptions<T> {
  readonly name: string;
  readonly read: () => Promise<T>;
  /** How long a value is reused, in milliseconds. */
  readonly ageMsMax?: number;
}

/**
 * A value for gauges that takes a query. Scrapes refresh it, at most one query at a time, and wait
 * 800 ms for it at most: the database or Redis may be frozen.
 */
export class Probe<T> {
  readonly #options: Required<ProbeOptions<T>>;
  #value: T | undefined;
  #readAt = Number.NEGATIVE_INFINITY;
  #reading: Promise<void> | undefined;

  constructor(options: ProbeOptions<T>) {
    this.#options = { ageMsMax: PROBE_AGE_MS_MAX, ...options };
  }

  /** The value, or undefined where it could not be read. */
  get value(): T | undefined {
    return this.#value;
  }

  /** Refreshes the value at each scrape from now on. Returns what ends that. */
  watch(): () => void {
    probes.add(this);
    const unwatch = probesUp.watch(() => [[this.#value === undefined ? 0 : 1, this.#options.name]]);
    return () => {
      probes.delete(this);
      unwatch();
    };
  }

  /** Reads the value again if it is too old. Never rejects. */
  async refresh(): Promise<void> {
    if (performance.now() - this.#readAt < this.#options.ageMsMax) return;
    const reading = this.#reading ?? this.#read();
    this.#reading = reading;
    await within(PROBE_TIMEOUT_MS, reading);
    // While a read hangs, the value is unknown.
    if (this.#reading === reading) this.#value = undefined;
  }

  async #read(): Promise<void> {
    try {
      this.#value = await this.#options.read();
      this.#readAt = performance.now();
    } catch {
      this.#value = undefined;
    } finally {
      this.#reading = undefined;
    }
  }
}
