import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';

const ROOT = join(import.meta.dirname, '../../..');

/** A command for a program in TypeScript, with what runs it. */
const COMMAND = /([\w./]*\bnode) [a-z]\S*\.ts\b/g;

// A container has nothing but the right one.
const inContainer = (line: string) => /docker|container/.test(line);

it('what is run on TypeScript as documented is run by the Node.js of this project: the system may have an older one', () => {
  const files = globSync(['README.md', 'CONTRIBUTING.md', 'docs/*.md', 'examples/*/*.ts'], { cwd: ROOT });
  const commands = files.flatMap((file) =>
    readFileSync(join(ROOT, file), 'utf8')
      .split('\n')
      .filter((line) => !inContainer(line))
      .flatMap((line) => [...line.matchAll(COMMAND)].map(([command, node]) => ({ file, command, node }))),
  );
  expect(commands.length).toBeGreaterThan(4);
  expect(commands.filter(({ node }) => node !== 'node_modules/.bin/node')).toEqual([]);
});
