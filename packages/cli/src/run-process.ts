import type { AdminPrograms } from './commands/admin.ts';
import { runProgram } from './program.ts';

/** Runs the command line as this process. */
export async function runProcess(admin: AdminPrograms): Promise<void> {
  // The reader of our output may go away, as `head` does.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => process.exit(0));

  // npm and the scripts that start us forward no signal when they are killed themselves.
  process.once('disconnect', () => process.emit('SIGTERM') || process.exit(143));
  process.channel?.unref();

  // A failed command sets the code, and output that is still buffered is written.
  const code = await runProgram(process.argv.slice(2), process, admin);
  if (code !== 0) process.exitCode = code;
}
