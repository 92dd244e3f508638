import { readFile, writeFile } from 'node:fs/promises';
import { createProgram } from '../src/program/program.ts';
import { updateDocument } from '../src/program/render-docs.ts';

/** Writes the commands into docs/cli.md. */
const path = new URL('../../../docs/cli.md', import.meta.url);
await writeFile(path, updateDocument(await readFile(path, 'utf8'), createProgram(process)));
