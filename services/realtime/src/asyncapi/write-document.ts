import { writeFile } from 'node:fs/promises';
import { asyncApiDocument } from './document.ts';

/** Writes docs/asyncapi.json, for the address that `npm start` listens on. */
await writeFile(
  new URL('../../../../docs/asyncapi.json', import.meta.url),
  `${JSON.stringify(asyncApiDocument('ws://localhost:8081'), null, 2)}\n`,
);
