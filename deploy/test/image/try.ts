import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eventually } from '@latchkey/testkit/eventually';
import { readComposeFile } from '../compose/compose-file.ts';
import { makeEnv } from '../compose/example-env.ts';
import { Container } from './container.ts';
import { startServers } from './servers.ts';
import { runSession } from './session.ts';

/**
 * Runs what docker-compose.yml runs from the image, in its order, with its settings, as its user and on a read-only root; then a first session, and
 * an ordered stop. As root on Linux, on a network of its own, so that ports are free and nothing else is reached:
 *
 *     unshare --net sh -c 'ip link set lo up && node_modules/node/bin/node deploy/test/image/try.ts ROOT'
 */

const [root = ''] = process.argv.slice(2);
const tell = (line: string) => process.stdout.write(`${line}\n`);
const compose = readComposeFile(makeEnv());
const ours = Object.entries(compose.services).filter(([, { image }]) => image.startsWith('latchkey:'));
const dir = mkdtempSync(join(tmpdir(), 'latchkey-try-'));
const hosts = join(dir, 'hosts');
writeFileSync(hosts, `127.0.0.1 localhost ${Object.keys(compose.services).join(' ')}\n`);
// One network for all of them: the worker would take the ports of its service.
const apart: Record<string, Record<string, string>> = { 'avatar-worker': { PORT: '8094', GRPC_PORT: '9094' } };
const METRICS_PORT_FIRST = 9464;
const running: Container[] = [];
const servers = await startServers();

try {
  const done = new Set<string>();
  while (done.size < ours.length) {
    const [name, definition] =
      ours.find(([candidate, { depends_on = {} }]) => {
        return (
          !done.has(candidate) &&
          Object.keys(depends_on).every((needed) => done.has(needed) || !ours.some(([own]) => own === needed))
        );
      }) ?? assert.fail('what is left waits for itself');
    await start(name, definition);
    done.add(name);
  }
  for (const container of running) await lookAt(container);
  const { setAvatar } = await runSession();
  await setAvatar();
  await killDecoder();
  await setAvatar();
  tell('✓ sign-up, application, upload, live event, avatar; another avatar after its decoder was killed');
  for (const container of running.toReversed()) {
    const { code, ms } = await container.stop();
    assert.equal(code, 0, container.lines.slice(-5).join('\n'));
    tell(`✓ ${container.name} stopped in ${ms} ms`);
  }
} catch (err) {
  for (const { name, lines } of running) tell(`${name}: ${lines.slice(-5).join('\n  ')}`);
  throw err;
} finally {
  for (const container of running) container.kill();
  await servers.stop();
  rmSync(dir, { recursive: true, force: true });
}

async function start(name: string, definition: (typeof ours)[number][1]): Promise<void> {
  const startedAt = performance.now();
  const metricsPort = METRICS_PORT_FIRST + running.length;
  const env: Record<string, string> = {
    ...servers.adapt(definition.environment ?? {}),
    METRICS_PORT: String(metricsPort),
    ...apart[name],
  };
  const container = new Container(name, { root, hosts, command: definition.command ?? [], env });
  if (definition.restart?.startsWith('on-failure')) {
    assert.equal(await container.ended, 0, container.lines.join('\n'));
  } else {
    running.push(container);
    const check = [
      ...(apart[name] ? ['env', `PORT=${apart[name].PORT}`] : []),
      ...(definition.healthcheck?.test?.slice(1) ?? []),
    ];
    await eventually(() => container.isReady(check), { timeoutMs: 30_000 });
    await readMetrics(metricsPort, env.METRICS_TOKEN ?? '');
  }
  tell(`✓ ${name} after ${Math.round(performance.now() - startedAt)} ms: ${container.lines.at(-1)?.slice(0, 100)}`);
}

async function readMetrics(port: number, token: string): Promise<void> {
  const read = (headers: Record<string, string>) => fetch(`http://127.0.0.1:${port}/metrics`, { headers });
  assert.equal((await read({})).status, 401);
  assert.match(await (await read({ authorization: `Bearer ${token}` })).text(), /^latchkey_/m);
}

/** Process 1 is Node.js without any right, on a root that can't be written to, and uses what was compiled with the image. */
async function lookAt(container: Container): Promise<void> {
  assert.match(container.commandLine, /^node (services|deploy)\//);
  assert.equal(container.status('NSpid').split(/\s+/).at(-1), '1');
  assert.match(container.status('Uid'), /^(10001\s*){4}$/);
  for (const set of ['CapPrm', 'CapEff', 'CapBnd', 'CapInh', 'CapAmb']) assert.match(container.status(set), /^0+$/);
  assert.equal(container.status('NoNewPrivs'), '1');
  await assert.rejects(container.exec('node', '-e', `fs.writeFileSync('/app/x', '')`), /EROFS/);
  const compiled = await container.exec('node', '-p', `require('node:module').getCompileCacheDir()`);
  assert.match(compiled, /^\/var\/cache\/latchkey\/.+-10001$/);
  tell(`✓ ${container.name} has ${Math.round(Number.parseInt(container.status('VmRSS'), 10) / 1024)} MiB, and no right`);
}

/** Kills what decodes images; process 1 has to bury it. */
async function killDecoder(): Promise<void> {
  const worker = running.find(({ name }) => name === 'avatar-worker') ?? assert.fail();
  const children = () =>
    execFileSync('ps', ['--ppid', String(worker.pid), '-o', 'pid=,stat='], { encoding: 'utf8' })
      .trim()
      .split('\n');
  const [decoder] = children()[0]?.trim().split(/\s+/) ?? [];
  assert.ok(Number(decoder) > 1);
  process.kill(Number(decoder), 'SIGKILL');
  await eventually(() => !execFileSync('ps', ['-e', '-o', 'pid='], { encoding: 'utf8' }).split(/\s+/).includes(String(decoder)));
}
