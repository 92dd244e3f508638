import type { Shape } from './instance.ts';

/** The shared instance of a shape, as plain values, which cross a process boundary. */
export interface SharedInstance {
  readonly shape: Shape;
  readonly baseUrl: string;
  readonly port: number;
  readonly realtimeUrl: string;
  readonly logDir: string;
  readonly objectsDir: string;
  /** Where the files service answers other services, in the shape in which it does. */
  readonly filesUrl: string | undefined;
  /** What the instance sends its traces to; see `OtlpReader`. */
  readonly tracesUrl: string;
}

declare module 'vitest' {
  export interface ProvidedContext {
    latchkeyInstance: SharedInstance;
  }
}
