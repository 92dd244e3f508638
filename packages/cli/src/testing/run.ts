import { Readable, Writable } from 'node:stream';
import type { AdminPrograms } from '../commands/admin.ts';
import type { Io } from '../program/io.ts';
import { runProgram } from '../program/program.ts';

/** Runs a command in this process, without a terminal and without a profile of this machine. */
export async function run(args: readonly string[], env: NodeJS.ProcessEnv = {}, stdin = '', admin?: AdminPrograms) {
  const printed = { stdout: '', stderr: '' };
  const stream = (name: keyof typeof printed) =>
    new Writable({
      write: (chunk, _encoding, done) => {
        printed[name] += chunk;
        done();
      },
    });
  const io = {
    env: { HOME: '/nonexistent', ...env },
    stdin: Readable.from(stdin === '' ? [] : [stdin]),
    stdout: stream('stdout'),
    stderr: stream('stderr'),
  };
  return { code: await runProgram(args, io as unknown as Io, admin), ...printed };
}
