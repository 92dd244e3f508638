import { fileURLToPath } from 'node:url';

/** The folder of the checkout, with a slash at its end. */
export const root = fileURLToPath(new URL('..', import.meta.url));
export const modulesDir = `${root}node_modules`;
/** The Node.js that everything runs on, whichever one the machine has. */
export const pinnedNode = `${modulesDir}/node/bin/node`;

/** An error for the user: one sentence, printed without a stack trace. */
export class Failure extends Error {
  constructor(message, exitCode = 1) {
    super(message);
    this.exitCode = exitCode;
  }
}
