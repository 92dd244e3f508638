/** What is common to what measures. Names begin with `latchkey_` and end in their unit. */
export interface InstrumentOptions {
  readonly name: string;
  /** One sentence, which Prometheus shows beside the name. */
  readonly help: string;
  /** Names of the labels. Their values have to be of a small set: never an id, an address, or what a client sent. */
  readonly labels?: readonly string[];
}

/** Settings of a histogram. */
export interface HistogramOptions extends InstrumentOptions {
  /** Upper bounds, in the unit of the name. */
  readonly buckets: readonly number[];
}

/** A value and those of the labels, in their order. */
export type Reading = readonly [value: number, ...labels: string[]];

/** Takes the values of one set of labels. */
export type Observe = (value: number) => void;

/** Keeps what instruments measure. */
export interface Recorder {
  counter(options: InstrumentOptions): (by: number, labels: readonly string[]) => void;
  histogram(options: HistogramOptions): (labels: readonly string[]) => Observe;
  /** @param read called at each scrape; values of the same labels are added up */
  gauge(options: InstrumentOptions, read: () => Iterable<Reading>): void;
}

interface Instrument {
  bind(recorder: Recorder): void;
}

const defined = new Set<Instrument>();
let recorder: Recorder | undefined;

/** Has the instruments of this process record from now on. They are module-level, like the one registry of a process that they belong to. */
export function recordWith(given: Recorder): void {
  recorder = given;
  for (const instrument of defined) instrument.bind(given);
}

/** Whether anything is recorded in this process. It is settled before services are composed. */
export function isMeasuring(): boolean {
  return recorder !== undefined;
}

function define(instrument: Instrument): void {
  defined.add(instrument);
  if (recorder) instrument.bind(recorder);
}

/** A number that only grows. Nothing is kept while nobody measures. */
export class Counter {
  readonly #options: InstrumentOptions;
  #add: ReturnType<Recorder['counter']> | undefined;

  constructor(options: InstrumentOptions) {
    this.#options = options;
    define(this);
  }

  bind(given: Recorder): void {
    this.#add = given.counter(this.#options);
  }

  add(by: number, ...labels: string[]): void {
    this.#add?.(by, labels);
  }
}

/** How often a value was within which bounds. */
export class Histogram {
  readonly #options: HistogramOptions;
  #child: ReturnType<Recorder['histogram']> | undefined;

  constructor(options: HistogramOptions) {
    this.#options = options;
    define(this);
  }

  bind(given: Recorder): void {
    this.#child = given.histogram(this.#options);
  }

  observe(value: number, ...labels: string[]): void {
    this.#child?.(labels)(value);
  }

  /** What takes the values of some labels, made once where it is needed often; undefined while nobody measures. */
  child(...labels: string[]): Observe | undefined {
    return this.#child?.(labels);
  }
}

/** A value that is read when it is asked for. */
export class Gauge {
  readonly #options: InstrumentOptions;
  readonly #sources = new Set<() => Iterable<Reading>>();

  constructor(options: InstrumentOptions) {
    this.#options = options;
    define(this);
  }

  bind(given: Recorder): void {
    given.gauge(this.#options, () => this.#read());
  }

  /**
   * Reads a source at each scrape, of which there may be several: equal labels are added up. It has to answer at once; what takes a query is read
   * by a {@link Probe}.
   *
   * @returns ends that
   */
  watch(source: () => Iterable<Reading>): () => void {
    if (!recorder) return () => undefined;
    this.#sources.add(source);
    return () => void this.#sources.delete(source);
  }

  *#read(): Generator<Reading> {
    for (const source of this.#sources) yield* source();
  }
}
