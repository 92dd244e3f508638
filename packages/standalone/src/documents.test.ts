import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { findFreePort } from '@latchkey/embedded/free-port';
import sharp from 'sharp';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type DocumentShell, openDocumentShell, readCommandBlocks } from './testing/document-shell.ts';
import { createDataDir, type Launched, launch } from './testing/launched.ts';
import { startOidcIssuer } from './testing/oidc-issuer.ts';
import { codeAt } from './testing/two-factor.ts';

/** Blocks that are not run here: what they do in place of a test would run all tests, or never end. */
const NOT_RUN = [
  'README.md 1', // npm start and npm test: how these tests are run
  'CONTRIBUTING.md 1', // the development tasks
];

const blocks = readCommandBlocks();
const cleanUps: Array<() => unknown> = [];
let launched: Launched;
let shell: DocumentShell;
let checkout: string;
const ran = new Set<string>();

beforeAll(async () => {
  const dir = await createDataDir();
  cleanUps.push(dir.remove);
  const issuer = await startOidcIssuer();
  cleanUps.push(() => issuer.stop());
  const DATA_DIR = join(dir.path, 'data');
  const settings = {
    DATA_DIR,
    PORT: String(await findFreePort()),
    REALTIME_PORT: String(await findFreePort()),
    METRICS_PORT: '0',
    METRICS_TOKEN: 'a-token-of-the-tests-of-documents',
    OIDC_ISSUERS: 'acme',
    OIDC_ACME_ISSUER: issuer.url,
    OIDC_ACME_CLIENT_ID: 'latchkey',
    OIDC_ACME_CLIENT_SECRET: 'a-secret-of-the-tests-of-documents',
    SIGN_IN_FAILURES_PER_15_MINUTES: '100',
    AUTH_ATTEMPTS_PER_MINUTE: '1000',
  };
  launched = launch(settings, ['--deployed']);
  cleanUps.push(async () => {
    launched.signal('SIGTERM');
    await launched.exited;
  });
  await launched.running;
  const others = ['ADMIN_DATABASE_URL', 'RESTORED_ADMIN_DATABASE_URL', 'RESTORED_DATABASE_URL', 'OLD_ADMIN_DATABASE_URL'];
  const env = {
    ...settings,
    ...Object.fromEntries(others.map((name) => [name, 'postgres://elsewhere'])),
    HOME: process.env.HOME,
    TMPDIR: dir.path,
    S3_BUCKET: 'bucket',
    S3_ENDPOINT: 'http://elsewhere',
    OLD: 'the-credential-before',
  };
  shell = await openDocumentShell(dir.path, env);
  cleanUps.push(() => shell.stop());
  checkout = join(dir.path, 'checkout');
  // Where `npm start` would keep its data.
  await shell.run(`ln -s '${DATA_DIR}' .data`);
}, 120_000);
afterAll(async () => {
  for (const cleanUp of cleanUps.reverse()) await cleanUp();
}, 60_000);

/** A block with what differs from run to run filled in. Fails if the document no longer has one of them. */
function block(path: string, number: number, fillIns: Record<string, string> = {}): string {
  ran.add(`${path} ${number}`);
  const script = blocks.get(path)?.[number - 1] ?? '';
  return Object.entries(fillIns).reduce((text, [from, to]) => {
    expect(text).toContain(from);
    return text.replaceAll(from, to);
  }, script);
}

const printed = (pattern: RegExp) => pattern.exec(launched.output())?.[1] ?? '';
const variable = async (name: string) => (await shell.run(`printf %s "$${name}"`)).trim();
const json = async (script: string) => JSON.parse(/^\{.*\}$/m.exec(await shell.run(script))?.[0] ?? 'null');

it('every command block of every document runs as it is written', { timeout: 240_000 }, async () => {
  const base = printed(/Base URL {4}(\S+)/);
  const realtime = printed(/Realtime {4}ws:\/\/(\S+?)\//);
  const address = (service: string, kind: string) => printed(new RegExp(`^ *${service} .*${kind} (?:http://)?([^\\s,]+)`, 'm'));

  const session = block('README.md', 2, { 'http://localhost:8080': base });
  const listening = session.lastIndexOf('LATCHKEY_SOCKET_KEY=');
  await shell.run(session.slice(0, listening));
  await shell.runUntil(session.slice(listening), /latchkey\.application\.paused {2}\{"status":"paused"\}/);

  await shell.run('cp "$DIR/jar" jar');
  expect(await json(block('docs/audit-log.md', 1))).toMatchObject({ success: true });
  const image = sharp({ create: { width: 8, height: 8, channels: 3, background: 'red' } });
  await writeFile(join(checkout, 'me.jpg'), await image.jpeg().toBuffer());
  expect(await json(block('docs/avatars.md', 1))).toMatchObject({ message: 'Avatar uploaded.' });
  await shell.run(block('docs/avatars.md', 2, { 'avatar-worker': 'avatar-worker --help' }));

  await writeFile(join(checkout, 'release.zip'), 'a release');
  await mkdir(join(checkout, 'build'));
  const uploads = await shell.run(block('docs/files.md', 1));
  expect(uploads.match(/"File uploaded\."/g)).toHaveLength(3);
  const download = await callByGrpcDocument(address);
  await shell.run(`URL='${download}'`);
  await shell.run(
    block('docs/files.md', 2, { 'curl -fSL -o setup.zip -C': 'truncate -s 3 setup.zip\ncurl -fSL -o setup.zip -C' }),
  );
  const main = 'services/files/src/main.ts check';
  expect(await shell.run(block('docs/files.md', 3, { [`${main} --mend`]: `${main} --help` }))).toContain('Nothing is wrong.');

  // Settings of another deployment.
  await shell.run(`(\n${block('docs/oidc.md', 1)}\n)`);
  expect(await json(block('docs/oidc.md', 2, { '"password": "…"': '"password": "analytical engine"' }))).toMatchObject({
    message: 'Link begun.',
  });
  await shell.runUntil(block('docs/events.md', 1), /Connected to Difference Engine/);
  await shell.runUntil(block('docs/events.md', 2), /^/);
  await shell.runUntil(block('docs/events.md', 3, { 'localhost:8081': realtime }), /101 Switching Protocols[\s\S]*"specversion"/);
  expect((await shell.run(block('docs/events.md', 4))).match(/"success":true/g)).toHaveLength(3);

  await shell.run(
    block('docs/operations.md', 1, { 'http://gateway:9464': printed(/Metrics +(\S+?)(?:\/metrics)? \(gateway\)/) }),
  );
  // Without a deployment, no log has the request.
  await shell.run(block('docs/operations.md', 2, { '2c963f66afa6\n': '2c963f66afa6 || true\n' }));
  await shell.run(withServersElsewhere(block('docs/operations.md', 3)));
  // npm scripts run in the checkout that this one points to.
  const backup = block('docs/operations.md', 4, {
    'backups/today': `${checkout}/backups/today`,
    'DATA_DIR=restored': `DATA_DIR=${checkout}/restored`,
  });
  await shell.run(backup.slice(0, backup.lastIndexOf('DATA_DIR=')));
  await shell.run('mkdir -p backup/objects');
  await shell.run(withServersElsewhere(block('docs/operations.md', 5)));
  const restoring = block('docs/operations.md', 6, {
    [main]: `${main} --help`,
    'npm run -s check-files': 'env -u DATABASE_URL -u OBJECTS_DIR npm run -s check-files',
  });
  await shell.run(withServersElsewhere(restoring));
  for (const number of [7, 8]) await shell.run(block('docs/operations.md', number));
  await shell.run(block('docs/s3.md', 1));
  await shell.run(`${block('docs/deployment.md', 1)}`);
  await shell.run(`(\n${block('docs/deployment.md', 2)}\n)`);
  await shell.run(
    block('deploy/README.md', 1, { 'ROOT=$(deploy/test/image/build.sh /tmp/latchkey-image)': 'ROOT=/tmp/latchkey-image' }),
  );
  await runAccounts(base);

  const all = [...blocks].flatMap(([path, { length }]) => Array.from({ length }, (_, i) => `${path} ${i + 1}`));
  expect([...ran, ...NOT_RUN].sort()).toEqual(all.sort());
});

/** For programs that are not installed here: what they connect to is not the Latchkey of this test. */
const withServersElsewhere = (script: string) => `(
REDIS_URL=redis://elsewhere
DATABASE_URL=postgres://elsewhere
OBJECTS_DIR=objects
${script}
)`;

/** Runs docs/grpc.md and answers a download URL that it made. */
async function callByGrpcDocument(address: (service: string, kind: string) => string): Promise<string> {
  const listed = await json('cat "$DIR/applications.json"');
  const { socketKey, httpKey } = listed.data[0].applicationApiKeys;
  await shell.run(
    block('docs/grpc.md', 1, {
      'localhost:9082': address('apps', 'gRPC'),
      'localhost:9084': address('files', 'gRPC'),
      'lk_http_…': httpKey,
    }),
  );
  const accountId = (await json('curl -s -b jar "$BASE/api/v1/auth/session"')).data.account.id;
  const table = await json('curl -s -b jar "$BASE/api/v1/panel/get-files-table?applicationId=$APP&currentPage=1"');
  const printedLines = await shell.run(
    block('docs/grpc.md', 2, {
      'localhost:9082': address('apps', 'gRPC'),
      'localhost:8082': address('apps', 'Connect'),
      'localhost:8084': address('files', 'Connect'),
      'lk_sock_…': socketKey,
      'lk_http_…': httpKey,
      '"accountId": "…", "applicationId": "…", "fileId": "…"': `"accountId": "${accountId}", "applicationId": "${await variable('APP')}", "fileId": "${table.data[0].id}"`,
    }),
  );
  return /"url":"([^"]+)"/.exec(printedLines)?.[1] ?? '';
}

/** Runs docs/accounts.md last: it ends the session and changes the password. */
async function runAccounts(base: string) {
  await writeFile(join(checkout, 'password.txt'), 'analytical engine\n');
  await shell.run(`KEY_ID=${(await variable('KEY')).split('_')[2]}`);
  const signIn = block('docs/accounts.md', 1, { 'http://localhost:8080': base });
  const [beforeSignOut = '', signOut = ''] = signIn.split(/(?=^curl .*sign-out)/m);
  await shell.run(beforeSignOut);
  const [setUp = '', enable = '', ...rest] = block('docs/accounts.md', 2).split('\n\n');
  const { secret } = (await json(setUp)).data;
  const enabled = await json(enable.replace('123456', codeAt(secret, Date.now())));
  // An app's code is accepted once, so recovery codes stand in for the next ones.
  for (const [i, paragraph] of rest.entries()) await shell.run(paragraph.replace('123456', enabled.data.recoveryCodes[i]));
  await shell.run(signOut);
  await shell.run(
    block('docs/accounts.md', 3, {
      'create --username ada --email ada@example.com': 'create --generate --username grace --email grace@example.com',
      'reset-password ada@example.com': 'reset-password --generate ada@example.com',
      '4fR0aZ7hQmW2xK9c': '"$KEY_ID"',
    }),
  );
}
