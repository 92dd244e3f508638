import type { Shape } from './instance.ts';

/** The instance that the end-to-end tests of one shape share. Plain values only: they cross a process boundary. */
export interface SharedInstance {
  readonly shape: Shape;
  readonly baseUrl: string;
  readonly port: number;
  readonly realtimeUrl: string;
  readonly logDir: string;
  readonly objectsDir: string;
  /** Where the files service answers other services, in the shape in which it does. */
  readonly filesUrl: string | undefined;
}

declare module 'vitest' {
  export interface ProvidedContext {
    latchkeyInstance: SharedInstance;
  }
}
