/** The package has no types. These cover what is used here. */
declare module 'pino-roll' {
  import type { EventEmitter } from 'node:events';

  interface RollingFile extends EventEmitter {
    write(line: string): boolean;
    end(): void;
  }

  export default function openRollingFile(options: object): Promise<RollingFile>;
}
