import type { AdminPrograms } from '../commands/admin.ts';
import { runProgram } from './program.ts';

export async function runProcess(admin: AdminPrograms): Promise<void> {
  for (const stream of [process.stdout, process.stderr]) stream.on('error', exitWithoutOutput);

  // npm and the scripts that start us forward no signal when they are killed themselves.
  process.once('disconnect', () => process.emit('SIGTERM') || process.exit(143));
  process.channel?.unref();

  // A failed command sets the code, and output that is still buffered is written.
  const code = await runProgram(process.argv.slice(2), process, admin);
  if (code !== 0) process.exitCode = code;
}

function exitWithoutOutput({ code }: NodeJS.ErrnoException): never {
  // A reader that stops early, as `head` does, has all that it wants.
  if (code === 'EPIPE') process.exit(0);
  process.stderr.write(`Standard output can't be written (${code}).\n`);
  process.exit(1);
}
