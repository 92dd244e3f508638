import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { HistogramOptions, InstrumentOptions, Reading, Recorder } from './instrument.ts';
import { refreshProbes } from './probe.ts';

/** What a scrape gets. */
export interface Exposition {
  readonly contentType: string;
  render(): Promise<string>;
}

/** Begins what all names begin with. */
const PREFIX = 'latchkey_';

/** Keeps what instruments measure with prom-client, in a registry of its own. This is the only module that loads the library. */
export class PrometheusRecorder implements Recorder, Exposition {
  readonly #registry = new Registry();
  #rendering: Promise<string> | undefined;

  /** @param service label of the process's own metric */
  constructor(service: string) {
    collectDefaultMetrics({ register: this.#registry, prefix: PREFIX });
    const options = { name: `${PREFIX}process_info`, help: 'The process, always 1.', labels: ['service', 'node'] };
    this.gauge(options, () => [[1, service, process.version]]);
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  counter(options: InstrumentOptions) {
    const counter = new Counter(this.#describe(options));
    // One without labels is there from the start, so that its first step is seen as one.
    if (!options.labels) return (by: number) => counter.inc(by);
    return (by: number, labels: readonly string[]) => counter.labels(...labels).inc(by);
  }

  histogram(options: HistogramOptions) {
    const histogram = new Histogram({ ...this.#describe(options), buckets: [...options.buckets] });
    return (labels: readonly string[]) => {
      const child = histogram.labels(...labels);
      return (value: number) => child.observe(value);
    };
  }

  gauge(options: InstrumentOptions, read: () => Iterable<Reading>): void {
    new Gauge({
      ...this.#describe(options),
      collect() {
        this.reset();
        // Without labels, a reset leaves a zero, which nobody has read.
        if (!options.labels) this.remove();
        for (const [value, ...labels] of read()) this.labels(...labels).inc(value);
      },
    });
  }

  /** Everything as text. Whoever asks while it is being made gets the same. */
  render(): Promise<string> {
    this.#rendering ??= this.#render().finally(() => {
      this.#rendering = undefined;
    });
    return this.#rendering;
  }

  async #render(): Promise<string> {
    await refreshProbes();
    return this.#registry.metrics();
  }

  #describe({ name, help, labels = [] }: InstrumentOptions) {
    return { name, help, labelNames: [...labels], registers: [this.#registry] };
  }
}
