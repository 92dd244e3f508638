import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { findFreePort } from '@latchkey/embedded/process/free-port';
import { ROOT } from '@latchkey/launcher/program';
import sharp from 'sharp';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type DocumentShell, openDocumentShell, readCommandBlocks } from '../client/document-shell.ts';
import { codeAt } from '../client/two-factor.ts';
import { createDataDir, startLauncher } from '../instance/launcher-process.ts';

const documents = readCommandBlocks();
const blocks = [...documents].flatMap(([path, scripts]) => scripts.map((script, i) => [`${path} ${i + 1}`, script] as const));
const { scripts: npmScripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));

it.each(blocks)('the commands of %s are valid shell, and name npm scripts and files that exist', (_title, script) => {
  expect(spawnSync('sh', ['-n'], { input: script, encoding: 'utf8' }).stderr).toBe('');
  const named = [...script.matchAll(/\bnpm (?:run (?:-s )?)?(start|test|(?<=run (?:-s )?)[a-z][\w:-]*)/g)].map(
    ([, name = '']) => name,
  );
  expect(named.filter((name) => !(name in npmScripts))).toEqual([]);
  const paths = [...script.matchAll(/\b(?:deploy|services|examples|packages)\/[\w./-]+\.[a-z]+/g)].map(([path]) => path);
  expect(paths.filter((path) => !path.includes('production') && !existsSync(join(ROOT, path)))).toEqual([]);
  // The system may have an older Node.js; a container has only the right one.
  const lines = script.split('\n').filter((line) => !/docker|container/.test(line));
  const nodes = lines.flatMap((line) => [...line.matchAll(/([\w./]*\bnode) [a-z]\S*\.ts\b/g)].map(([, node]) => node));
  expect(nodes.filter((node) => node !== 'node_modules/.bin/node')).toEqual([]);
});

describe('the commands of documents, against a running Latchkey,', { timeout: 120_000 }, () => {
  let shell: DocumentShell;
  let checkout: string;
  let base: string;
  const cleanUps: Array<() => unknown> = [];
  beforeAll(async () => {
    const dir = await createDataDir();
    cleanUps.push(dir.remove);
    const settings = {
      DATA_DIR: join(dir.path, 'data'),
      PORT: String(await findFreePort()),
      REALTIME_PORT: String(await findFreePort()),
      AUTH_ATTEMPTS_PER_MINUTE: '1000',
    };
    const launcher = await startLauncher(settings);
    cleanUps.push(launcher.stop);
    base = await launcher.running;
    shell = await openDocumentShell(dir.path, {
      ...settings,
      HOME: process.env.HOME,
      XDG_CONFIG_HOME: dir.path,
      TMPDIR: dir.path,
    });
    cleanUps.push(() => shell.stop());
    checkout = join(dir.path, 'checkout');
    const session = block('README.md', 3, { 'http://localhost:8080': base });
    const listening = session.lastIndexOf('LATCHKEY_SOCKET_KEY=');
    await shell.run(`${session.slice(0, listening)}\ncp "$DIR/jar" jar`);
    await shell.runUntil(session.slice(listening), /latchkey\.application\.paused {2}\{"status":"paused"\}/);
  }, 120_000);
  afterAll(async () => {
    for (const cleanUp of cleanUps.reverse()) await cleanUp();
  }, 60_000);

  /**
   * A block with what differs between instances filled in. Fails if the document lacks one of
   * these.
   */
  function block(path: string, number: number, fillIns: Record<string, string> = {}): string {
    return Object.entries(fillIns).reduce(
      (text, [from, to]) => {
        expect(text).toContain(from);
        return text.replaceAll(from, to);
      },
      documents.get(path)?.[number - 1] ?? '',
    );
  }
  const json = async (script: string) => JSON.parse(/^\{.*\}$/m.exec(await shell.run(script))?.[0] ?? 'null');

  it('read the audit log, set an avatar and upload files', async () => {
    expect(await json(block('docs/audit-log.md', 1))).toMatchObject({ success: true });
    const image = sharp({ create: { width: 8, height: 8, channels: 3, background: 'red' } });
    await writeFile(join(checkout, 'me.jpg'), await image.jpeg().toBuffer());
    expect(await json(block('docs/avatars.md', 1))).toMatchObject({ message: 'Avatar uploaded.' });
    await writeFile(join(checkout, 'release.zip'), 'a release');
    await mkdir(join(checkout, 'build'));
    expect((await shell.run(block('docs/files.md', 1))).match(/"File uploaded\."/g)).toHaveLength(3);
    await writeFile(join(checkout, 'large.zip'), 'a large release');
    expect(await shell.run(block('docs/files.md', 2))).toContain('"File uploaded."');
    expect(await shell.run(block('docs/files.md', 3))).toMatch(/^x-file-id: /im);
  });

  it('publish a release, and withdraw it', async () => {
    await writeFile(join(checkout, 'Acme-1.4.0.exe'), 'a setup');
    expect((await shell.run(block('docs/releases.md', 2))).match(/"status":"(?:published|yanked)"/g)).toHaveLength(3);
  });

  it('listen to live events', async () => {
    await shell.runUntil(block('docs/events.md', 1), /Connected to Difference Engine/);
    expect((await shell.run(block('docs/events.md', 4))).match(/"success":true/g)).toHaveLength(3);
  });

  // Last: it ends the session and changes the password.
  it('manage accounts', async () => {
    await writeFile(join(checkout, 'password.txt'), 'analytical engine\n');
    const keyId = (await shell.run('printf %s "$KEY"')).trim().split('_')[2] ?? '';
    const signIn = block('docs/accounts.md', 1, { 'http://localhost:8080': base });
    const [beforeSignOut = '', signOut = ''] = signIn.split(/(?=^curl .*sign-out)/m);
    await shell.run(beforeSignOut);
    const [setUp = '', enable = '', ...rest] = block('docs/two-factor.md', 1).split('\n\n');
    const { secret } = (await json(setUp)).data;
    const { recoveryCodes } = (await json(enable.replace('123456', codeAt(secret, Date.now())))).data;
    // A code of an app is accepted once: recovery codes stand for the next ones.
    for (const [i, paragraph] of rest.entries()) await shell.run(paragraph.replace('123456', recoveryCodes[i]));
    await shell.run(signOut);
    const operating = block('docs/operators.md', 1, {
      'create --username ada --email ada@example.com': 'create --generate --username grace --email grace@example.com',
      '4fR0aZ7hQmW2xK9c': keyId,
    });
    // Each command is a process of seconds: those of one account's state are tested in identity.
    await shell.run(operating.replaceAll(/^.* (?:reset-password|change-email|two-factor-off|sign-out) .*\n/gm, ''));
  });
});
