#!/usr/bin/env node
import { runProgram } from './program.ts';

// The reader of our output may go away, as `head` does.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => process.exit(0));

// npm and the scripts that start us forward no signal when they are killed themselves.
process.once('disconnect', () => process.emit('SIGTERM') || process.exit(143));
process.channel?.unref();

// A failed command sets the code, and output that is still buffered is written.
process.exitCode = await runProgram(process.argv.slice(2), process);
