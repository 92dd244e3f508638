/** The package has no types. These cover what is used here. */
declare module 'pino-roll' {
  import type { EventEmitter } from 'node:events';

  interface RollingFileOptions {
    file: string;
    extension: string;
    size: string;
    limit: { count: number; removeOtherLogFiles: boolean };
    mkdir: boolean;
    sync: boolean;
    minLength: number;
    periodicFlush: number;
    maxLength: number;
  }

  interface RollingFile extends EventEmitter {
    write(line: string): boolean;
    end(): void;
  }

  export default function openRollingFile(options: RollingFileOptions): Promise<RollingFile>;
}
