import { readFile, writeFile } from 'node:fs/promises';
import { declarationSchema } from '../src/apply/declaration.ts';
import { createProgram } from '../src/program/program.ts';
import { updateDocument } from '../src/program/render-docs.ts';

/** Writes the commands into docs/cli.md, and the JSON Schema of declarations. */
const path = new URL('../../../docs/cli.md', import.meta.url);
await writeFile(path, updateDocument(await readFile(path, 'utf8'), createProgram(process)));
await writeFile(new URL('../latchkey.schema.json', import.meta.url), `${JSON.stringify(declarationSchema(), null, 2)}\n`);
