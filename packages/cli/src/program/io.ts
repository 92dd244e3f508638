import type { ReadStream, WriteStream } from 'node:tty';

/** The surroundings of the program, replaced in tests. `process` is one. */
export interface Io {
  readonly env: NodeJS.ProcessEnv;
  readonly stdin: ReadStream;
  readonly stdout: WriteStream;
  readonly stderr: WriteStream;
}
