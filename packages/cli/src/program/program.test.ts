import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer, type RequestListener, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findFreePort } from '@latchkey/testkit/network/free-port';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { AdminPrograms } from '../commands/admin.ts';
import { findCandidates, visibleCommands } from '../completion/completion.ts';
import { run } from '../testing/run.ts';
import { createProgram } from './program.ts';
import { updateDocument } from './render-docs.ts';

const ID = '019a9e41-0b7d-7a06-9f52-3c8e1d4b7a15';
const program = createProgram(process);
const all = (command = program): (typeof program)[] => visibleCommands(command).flatMap((child) => [child, ...all(child)]);

it('prints help with the most used commands first', async () => {
  const { code, stdout } = await run([]);
  expect(code).toBe(0);
  expect(stdout).toMatch(/^Usage: latchkey <command>\n\n.*\n\nMost used:\n {2}login .*\n {2}apps .*\n/);
  expect(stdout.split('\n').filter((line) => line.length > 80)).toEqual([]);
});

it('has an example for every command, and each is a command line that the program accepts', async () => {
  const leaves = all().filter((command) => command.commands.length === 0);
  expect(leaves.filter((command) => command.exampleList.length === 0).map((command) => command.name())).toEqual([]);
  for (const [line] of [program, ...all()].flatMap(({ exampleList }) => exampleList)) {
    const [, command = ''] = /latchkey ([^|<>)]*)/.exec(line) ?? [];
    const args = [...command.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? '');
    const parser = createProgram(process);
    for (const leaf of all(parser)) leaf.action(() => undefined);
    await expect(parser.parseAsync(args, { from: 'user' }), line).resolves.toBe(parser);
  }
});

describe('without a terminal', () => {
  it.each([
    [['apps', 'pase', 'x'], 2, `Unknown command 'pase' (Did you mean pause?). See "latchkey apps --help".`],
    [['files', 'list'], 2, `Required option '-a, --app <app>' not specified. See "latchkey files list --help".`],
    [['apps', 'list'], 3, 'Not signed in. Run "latchkey login", or set LATCHKEY_URL and LATCHKEY_KEY.'],
    [
      ['apps', 'list', '--profile', 'b'],
      3,
      'Not signed in. Run "latchkey login --profile b", or set LATCHKEY_URL and LATCHKEY_KEY.',
    ],
    [['login'], 2, 'There is no terminal to ask for the URL. Add --url <url>.'],
    [['login', '--url', 'x'], 2, 'url must be an http:// or https:// URL, such as https://panel.example.com.'],
    [
      ['listen', 'lk_sock_1'],
      2,
      'Keys among the arguments are visible to others. Name the application, or set LATCHKEY_SOCKET_KEY.',
    ],
    [
      ['admin', 'backup', 'x'],
      1,
      `This needs the server's code and data: run "npx latchkey admin backup" in the server's checkout.`,
    ],
    [['audit', '--csv', '--json'], 2, 'Both --csv and --json were given. Choose one of them.'],
  ])('%j ends with code %i and one line', async (args, code, line) => {
    expect(await run(args)).toEqual({ code, stdout: '', stderr: `${line}\n` });
  });

  it('reports a server that is unreachable with code 6, and never repeats the key', async () => {
    const url = `http://127.0.0.1:${await findFreePort()}`;
    const { code, stdout, stderr } = await run(['apps', 'list', '-v'], { LATCHKEY_URL: url, LATCHKEY_KEY: 'lk_mgmt_secret' });
    const line = `Cannot reach ${url}: connect ECONNREFUSED ${url.slice(7)}. Check the URL, and that the server runs.\n`;
    expect({ code, stdout, stderr }).toEqual({ code: 6, stdout: '', stderr: line });
  });

  it('does not send the key of a profile to another server', async () => {
    const { code, stderr } = await run(['apps', 'list'], { LATCHKEY_URL: 'http://127.0.0.1:9' });
    expect({ code, stderr }).toMatchObject({ code: 3, stderr: expect.stringContaining('set LATCHKEY_KEY') });
  });
});

it.each([
  [6, 'breaks off', (res: ServerResponse) => void res.writeHead(200).write('abc', () => res.destroy())],
  [6, 'gets no response', (res: ServerResponse) => void res.destroy()],
  [5, 'is rate limited', (res: ServerResponse) => void res.writeHead(429).end()],
])('ends with code %i and one line where a download %s', async (expected, _name, respond) => {
  const { download, directory } = await serveDownload(respond);
  const { code, stdout, stderr } = await download(join(directory, 'a.zip'));
  expect({ code, stdout, stderr }).toEqual({
    code: expected,
    stdout: '',
    stderr: expect.stringMatching(/^The download failed.* Run it again\.\n$/),
  });
  expect(await readdir(directory)).toEqual([]);
});

it('downloads to standard output and through links, but neither to devices nor over other files', async () => {
  const { download, directory } = await serveDownload((res) => void res.end('abc'));
  expect(await download('-')).toMatchObject({ code: 0, stdout: 'abc' });
  expect(await download('/dev/null', '--force')).toMatchObject({ code: 2, stderr: expect.stringContaining('is not a file') });
  const [target, link] = [join(directory, 'target'), join(directory, 'link')];
  await writeFile(target, 'before');
  await writeFile(`${target}.part`, 'mine');
  await symlink(target, link);
  expect(await download(link)).toMatchObject({ code: 2, stderr: expect.stringContaining('--force') });
  expect(await download(link, '--force')).toMatchObject({ code: 0 });
  expect(await readFile(target, 'utf8')).toBe('abc');
  expect(await readdir(directory)).toEqual(['link', 'target', 'target.part']);
});

it.each(['.bashrc', '..', '', '../a', 'a/b', 'C:a', 'a\u009b', 'a '])(
  'downloads a file called %j only to an output',
  async (name) => {
    const { download, directory } = await serveDownload((res) => void res.end('abc'), name);
    expect(await download(undefined)).toEqual({
      code: 2,
      stdout: '',
      stderr: expect.stringMatching(/^The server calls .* Add --output/),
    });
    expect(await readdir(directory)).toEqual([]);
    expect(await download('a.zip')).toMatchObject({ code: 0 });
    expect(await readdir(directory)).toEqual(['a.zip']);
  },
);

it.each(['-', '-rf'])('downloads a file called %s to a file, also where - is standard output', async (name) => {
  const { download, directory } = await serveDownload((res) => void res.end('abc'), name);
  expect(await download(undefined)).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(new RegExp(`^[0-9a-f]{64} {2}\\./${name}\n$`)),
  });
  expect(await readdir(directory)).toEqual([name]);
});

it('prints no control character of a server, whatever a command prints', async () => {
  const evil = 'a\u009b2J\u202e\u0007';
  const actor = { kind: 'key', credentialId: evil, address: evil };
  const entry = {
    id: ID,
    at: evil,
    action: evil,
    actor,
    requestId: evil,
    subject: { kind: evil, id: evil },
    changes: { [evil]: evil },
  };
  const key = { id: ID, name: evil, publicId: evil, keyLast4: evil, scopes: [evil], allApplications: true, applicationIds: [] };
  const file = { id: ID, displayName: evil, byteSize: 3, checksum: evil, createdAt: evil };
  const responses: Record<string, unknown> = {
    'get-applications': [{ id: ID, name: evil, applicationApiKeys: { socketKey: evil, httpKey: evil } }],
    'list-applications': [{ id: ID, name: evil, status: evil, version: evil, files: 1, storedMiB: 1, updatedAt: evil }],
    'get-application-settings': { version: evil, status: evil },
    'get-application-license-levels': [evil],
    'get-files-metadata': { totalFiles: 1, lastUploadedAt: evil },
    'get-files-table': [file],
    'api-keys': [key],
    'audit-log': { entries: [entry], nextCursor: null },
    'sign-in': { account: { username: evil, email: evil }, csrfToken: 'a' },
  };
  const env = await serve((req, res) => {
    const name = new URL(req.url ?? '', 'http://a').pathname.split('/').pop() ?? '';
    if (name === 'delete-application') res.writeHead(400);
    const failure = { success: false, code: evil, message: evil, details: [{ path: evil, message: evil }] };
    res.end(
      JSON.stringify(
        Object.hasOwn(responses, name) ? { success: true, message: evil, data: responses[name], totalPages: 1 } : failure,
      ),
    );
  });
  const session = ['--email', 'a@example.com', '--password-stdin'];
  for (const args of [
    ['apps', 'list', '--show-keys'],
    ['apps', 'show', ID],
    ['apps', 'version', ID],
    ['apps', 'delete', ID, '--yes'],
    ['levels', 'get', ID],
    ['files', 'list', '--app', ID],
    ['export'],
    ['api-keys', 'list', ...session],
    ['audit', ...session],
    ['audit', '--csv', ...session],
    ['whoami'],
  ]) {
    for (const options of [[], ['--verbose'], ...(args.includes('--csv') ? [] : [['--json']])]) {
      const { stdout, stderr } = await run([...args, ...options], env, 'a long passphrase\n');
      expect(stdout + stderr, args.join(' ')).toMatch(/u009b/);
      expect((stdout + stderr).replaceAll('\r\n', '\n'), args.join(' ')).not.toMatch(/[^\P{Cc}\n]|\p{Bidi_Control}/u);
      if (options[0] === '--json' && stdout !== '')
        expect(JSON.stringify(JSON.parse(stdout)), args.join(' ')).toContain(evil.slice(0, 4));
    }
  }
});

it('creates keys that never expire, and trusts no claim with two values', async () => {
  const bodies: unknown[] = [];
  const env = await serve(async (req, res) => {
    const body = Buffer.concat(await req.toArray()).toString();
    if (req.method === 'POST' && req.url?.endsWith('/api-keys')) bodies.push(JSON.parse(body));
    res.end(
      JSON.stringify({
        success: true,
        message: 'Done.',
        data: { account: {}, csrfToken: 'a', name: 'laptop', plaintextKey: 'a' },
      }),
    );
  });
  const session = ['--all-apps', '--email', 'a@example.com', '--password-stdin'];
  expect(await run(['api-keys', 'create', 'laptop', '--expires', 'never', ...session], env, 'a\n')).toMatchObject({ code: 0 });
  expect(bodies).toMatchObject([{ expiresAt: null }]);
  const claims = ['--claim', 'ref=refs/heads/main', '--claim', 'ref=refs/heads/next'];
  const add = ['trusted-issuers', 'add', 'CI', '--issuer', 'https://example.com', ...claims, ...session];
  expect(await run(add, env, 'a\n')).toMatchObject({ code: 2, stderr: expect.stringContaining('ref has two values') });
});

/** Serves a response to every request, and gives the environment for it. */
async function serve(respond: RequestListener): Promise<NodeJS.ProcessEnv> {
  const server = createServer(respond).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  return { LATCHKEY_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, LATCHKEY_KEY: 'lk_mgmt_1' };
}

/** A server with one file, whose bytes this sends: `abc` are right. */
async function serveDownload(respond: (res: ServerResponse) => void, displayName = 'a.zip') {
  const directory = await mkdtemp(join(tmpdir(), 'latchkey-download-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  const checksum = createHash('sha256').update('abc').digest('hex');
  const env = await serve((req, res) => {
    if (req.url === '/bytes') return respond(res);
    const url = `http://${req.headers.host}/bytes`;
    const file = { id: ID, displayName, byteSize: 3, checksum };
    const data = req.method === 'GET' ? { data: [file], totalPages: 1 } : { data: { url } };
    res.end(JSON.stringify({ success: true, message: 'Done.', ...data }));
  });
  // Into this folder, where no output is named.
  const former = process.cwd();
  process.chdir(directory);
  onTestFinished(() => process.chdir(former));
  const download = (output: string | undefined, ...options: string[]) =>
    run(['files', 'download', ID, '--app', ID, ...(output === undefined ? [] : ['--output', output]), ...options], env);
  return { download, directory };
}

it('gives a program of admin all its arguments, those of latchkey itself, too', async () => {
  const calls: unknown[] = [];
  const admin: AdminPrograms = { accounts: async (...call) => void calls.push(call) };
  const args = ['list', '--limit', '3', '--json', '--help', '--', '-v'];
  expect(await run(['admin', 'accounts', ...args], {}, '', admin)).toEqual({ code: 0, stdout: '', stderr: '' });
  await run(['admin', 'accounts'], { npm_lifecycle_event: 'accounts' }, '', admin);
  expect(calls).toEqual([
    ['latchkey admin accounts', args],
    ['npm run accounts --', []],
  ]);
});

describe('completion', () => {
  const complete = async (...words: string[]) =>
    (await findCandidates(program, words, async () => ['Difference Engine', 'Loom'])).map(
      (candidate) => candidate.split('\t')[0],
    );

  it.each([
    [['ap'], ['apps', 'apply', 'api-keys']],
    [['apps', 'p'], ['pause']],
    [
      ['--profile', 'x', 'levels', ''],
      ['get', 'set'],
    ],
    [['files', 'upload', '--r'], ['--replace']],
    [['apps', 'list', '--j'], ['--json']],
    [
      ['keys', 'rotate', 'app', ''],
      ['socket', 'http'],
    ],
    [
      ['apps', 'flags', 'app', '--user-requires-license', ''],
      ['on', 'off'],
    ],
    [['files', 'upload', '--app', 'x', ''], []],
    [['files', 'upload', '--app', 'Difference\\ E'], ['Difference Engine']],
    [['apps', 'pause', '"D'], ['Difference Engine']],
    [
      ['levels', 'set', ''],
      ['Difference Engine', 'Loom'],
    ],
  ])('of %j offers %j', async (words, candidates) => {
    expect(await complete(...words)).toEqual(candidates);
  });
});

it('docs/cli.md has the commands of the program; npm run generate updates it', () => {
  const document = readFileSync(new URL('../../../../docs/cli.md', import.meta.url), 'utf8');
  expect(updateDocument(document, program)).toBe(document);
});
