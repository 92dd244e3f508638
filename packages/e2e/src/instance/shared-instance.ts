import type { Shape } from './instance.ts';

/** The shared instance of a shape, as plain values, which cross a process boundary. */
export interface SharedInstance {
  readonly shape: Shape;
  readonly baseUrl: string;
  readonly port: number;
  readonly realtimeUrl: string;
  readonly logDir: string;
  readonly objectsDir: string;
  /** Traces endpoint of the instance; see `OtlpReader`. */
  readonly tracesUrl: string;
  /** Folder of the mails that the instance sent; see `waitForMail`. */
  readonly mailDir: string;
}

declare module 'vitest' {
  export interface ProvidedContext {
    latchkeyInstance: SharedInstance;
  }
}
