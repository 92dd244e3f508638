import { within } from '../within.ts';
import { Gauge } from './instrument.ts';

/** What a probe asks, and how often. */
export interface ProbeOptions<T> {
  /** Label of the probe. */
  readonly name: string;
  readonly read: () => Promise<T>;
  /** How long an answer stands, in milliseconds; 5 s unless set. */
  readonly ageMsMax?: number;
  /** How long a scrape waits for one, in milliseconds; 800 ms unless set. */
  readonly timeoutMs?: number;
}

/** Less than half of the shortest time-out that scrapes have. */
const TIMEOUT_MS = 800;
const AGE_MS_MAX = 5_000;

const probes = new Set<Probe<unknown>>();

const probesUp = new Gauge({
  name: 'latchkey_probe_up',
  help: 'Whether what a query is needed for could be read; what it reads is absent otherwise.',
  labels: ['probe'],
});

/**
 * A value that takes a query, for gauges. It is asked for by scrapes, once in a few seconds however many they are, never twice at once, and not waited
 * for when it takes long: what it depends on may be frozen.
 */
export class Probe<T> {
  readonly #options: Required<ProbeOptions<T>>;
  #value: T | undefined;
  #readAt = Number.NEGATIVE_INFINITY;
  #reading = Promise.resolve();
  #isReading = false;

  constructor(options: ProbeOptions<T>) {
    this.#options = { ageMsMax: AGE_MS_MAX, timeoutMs: TIMEOUT_MS, ...options };
  }

  /** What was read, or undefined where it could not be. */
  get value(): T | undefined {
    return this.#value;
  }

  /** Has scrapes ask. Returns what ends that. */
  watch(): () => void {
    probes.add(this);
    const unwatch = probesUp.watch(() => [[this.#value === undefined ? 0 : 1, this.#options.name]]);
    return () => {
      probes.delete(this);
      unwatch();
    };
  }

  /** Reads the value anew where it is out of date, and resolves when that is done or has taken too long. Never rejects. */
  async refresh(): Promise<void> {
    const { ageMsMax, timeoutMs } = this.#options;
    if (performance.now() - this.#readAt < ageMsMax) return;
    if (!this.#isReading) this.#reading = this.#read();
    await within(timeoutMs, this.#reading);
    // What is still being read says nothing of how things are now.
    if (this.#isReading) this.#value = undefined;
  }

  async #read(): Promise<void> {
    this.#isReading = true;
    try {
      this.#value = await this.#options.read();
      this.#readAt = performance.now();
    } catch {
      this.#value = undefined;
    } finally {
      this.#isReading = false;
    }
  }
}

/** Brings all probes up to date, as far as their time allows. */
export async function refreshProbes(): Promise<void> {
  await Promise.all([...probes].map((probe) => probe.refresh()));
}
