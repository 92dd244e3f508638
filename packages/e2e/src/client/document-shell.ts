import { spawn } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { chmod, cp, mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { eventually } from '@latchkey/testkit/eventually';

const ROOT = join(import.meta.dirname, '../../../..');

/** The command blocks of each document, by the path of the document. */
export function readCommandBlocks(): ReadonlyMap<string, readonly string[]> {
  const paths = globSync(['README.md', 'CONTRIBUTING.md', 'docs/*.md', 'deploy/*.md', 'examples/**/*.md'], {
    cwd: ROOT,
    exclude: (path) => path.includes('node_modules'),
  });
  const blocksOf = (path: string) =>
    [...readFileSync(join(ROOT, path), 'utf8').matchAll(/^```sh\n([\s\S]*?)^```/gm)].map(([, script = '']) => script);
  return new Map(paths.map((path) => [path, blocksOf(path)] as const).filter(([, blocks]) => blocks.length > 0));
}

/** Programs that are not installed; a stand-in records how each is called. */
const OTHER_PROGRAMS = [
  ...['docker', 'kubectl', 'grpcurl', 'qrencode', 'aws', 'rsync', 'unshare'],
  ...['psql', 'pg_dump', 'pg_restore', 'createdb', 'redis-cli'],
];

/** One shell for all documents, so that variables and files of one block are there in the next. */
export interface DocumentShell {
  /** Runs commands; rejects with their output if the last one fails, or any curl. */
  run(script: string): Promise<string>;
  /** Runs commands that do not end, until they have printed this. */
  runUntil(script: string, printed: RegExp): Promise<void>;
  /** Command lines of the programs that are not installed. */
  readOtherCalls(): Promise<readonly string[]>;
  stop(): Promise<void>;
}

/** Opens the shell in a copy of what a user has in a checkout, below the folder. */
export async function openDocumentShell(folder: string, env: NodeJS.ProcessEnv): Promise<DocumentShell> {
  const [checkout, bin] = [join(folder, 'checkout'), join(folder, 'bin')];
  await Promise.all([mkdir(checkout), mkdir(bin)]);
  const linked = ['node_modules', 'scripts', 'services', 'packages', 'proto', 'examples', 'package.json', 'docker-compose.yml'];
  for (const name of linked) await symlink(join(ROOT, name), join(checkout, name));
  await cp(join(ROOT, 'deploy'), join(checkout, 'deploy'), { recursive: true, filter: (path) => !path.includes('node_modules') });
  const calls = join(folder, 'calls');
  const refusals = join(folder, 'refusals');
  const programs: Array<[string, string]> = [
    ...OTHER_PROGRAMS.map((name): [string, string] => [name, `echo ${name} "$@" >> '${calls}'`]),
    [
      'curl',
      `PATH='${process.env.PATH}'
case " $* " in *' -f'* | *' --fail'*) fail= ;; *) fail=--fail-with-body ;; esac
curl $fail --max-time 30 "$@" || echo "exit code $?: curl $*" >> '${refusals}'`,
    ],
  ];
  for (const [name, script] of programs) {
    await writeFile(join(bin, name), `#!/bin/sh\n${script}\n`);
    await chmod(join(bin, name), 0o755);
  }
  const options = { cwd: checkout, env: { ...env, PATH: `${bin}:${process.env.PATH}` }, detached: true };
  const shell = startShell(options);
  return {
    async run(script) {
      const printed = await shell.run(script);
      const refused = await readFile(refusals, 'utf8').catch(() => '');
      if (refused !== '') throw new Error(`Refused: ${refused}${printed}`);
      return printed;
    },
    async runUntil(script, printed) {
      const variables = await shell.run('export -p');
      const other = startShell(options);
      try {
        void other.run(`${variables}\n${script}`).catch(() => undefined);
        await eventually(() => printed.test(other.printed()) || Promise.reject(new Error(other.printed())), {
          timeoutMs: 30_000,
        });
      } finally {
        await other.stop();
      }
    },
    readOtherCalls: async () => (await readFile(calls, 'utf8')).split('\n').filter(Boolean),
    stop: shell.stop,
  };
}

/** A shell that takes commands one after the other and says when each has ended. */
function startShell(options: { cwd: string; env: NodeJS.ProcessEnv; detached: boolean }) {
  const shell = spawn('sh', ['-aeu'], options);
  let printed = '';
  for (const stream of [shell.stdout, shell.stderr]) stream.on('data', (chunk: Buffer) => (printed += chunk.toString()));
  let hasEnded = false;
  const ended = new Promise<void>((resolve) => {
    shell.once('close', () => {
      hasEnded = true;
      resolve();
    });
  });
  shell.stdin.on('error', () => undefined);
  let count = 0;
  const run = async (script: string) => {
    printed = '';
    const end = `-- end of commands ${++count} --\n`;
    shell.stdin.write(`{\n${script}\n} < /dev/null\necho; echo '${end.trim()}'\n`);
    await eventually(() => hasEnded || printed.endsWith(end), { timeoutMs: 60_000, intervalMs: 20 });
    if (hasEnded) throw new Error(`The commands failed:\n${script}\nThey printed:\n${printed}`);
    return printed.slice(0, -end.length - 1);
  };
  const stop = async () => {
    if (!hasEnded) process.kill(-(shell.pid as number), 'SIGKILL');
    await ended;
  };
  return { run, stop, printed: () => printed };
}
