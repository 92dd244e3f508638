import { fileURLToPath } from 'node:url';

/** The folder of the checkout. */
export const root = fileURLToPath(new URL('..', import.meta.url));
export const modulesDir = `${root}node_modules`;
/** The Node.js that everything runs on, whichever one the machine has. */
export const pinnedNode = `${modulesDir}/node/bin/node`;
