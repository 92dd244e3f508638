import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { matchesGlob } from 'node:path';
import { promisify } from 'node:util';
import { type Copy, DockerfileParser, type Instruction } from 'dockerfile-ast';
import { describe, expect, it, onTestFinished } from 'vitest';
import { makeEnv, ROOT, readComposeFile } from './compose/compose-file.ts';
import { filesBelow, isSent, loadedLater, manifestOf, neededBy } from './image-contents.ts';
import { readerOf, SERVICES } from './programs.ts';

const dockerfile = DockerfileParser.parse(readFileSync(`${ROOT}deploy/Dockerfile`, 'utf8'));
const instructions = dockerfile.getInstructions();
const lastFrom = instructions.findLastIndex((instruction) => instruction.getKeyword() === 'FROM');
const [dependencies, final] = [instructions.slice(0, lastFrom), instructions.slice(lastFrom)];
const only = (stage: Instruction[], keyword: string) => stage.filter((instruction) => instruction.getKeyword() === keyword);
const argumentsOf = (stage: Instruction[], keyword: string) =>
  only(stage, keyword).map((instruction) => instruction.getRawArgumentsContent() ?? '');
const copies = (stage: Instruction[]) =>
  (only(stage, 'COPY') as Copy[])
    .filter((copy) => copy.getFromFlag() === null)
    .flatMap((copy) => copy.getArguments().slice(0, -1))
    .map((argument) => argument.getValue().replace(/\/$/, ''));

/** Programs of the image. */
const services = SERVICES.map((name) => `services/${name}/src/main.ts`);
const programs = [...services, ...filesBelow('deploy/bin'), ...filesBelow('deploy/setup'), ...filesBelow('deploy/container')];
const needed = neededBy(programs);
const compose = readComposeFile(makeEnv());

describe('the image', () => {
  it('is pinned to the Node.js and the package manager of the repository', () => {
    const node = /^ {2}node: (.+)$/m.exec(readFileSync(`${ROOT}pnpm-workspace.yaml`, 'utf8'))?.[1];
    expect(argumentsOf(instructions, 'ARG')[0]).toBe(`NODE_IMAGE=docker.io/library/node:${node}-trixie-slim`);
    expect(readFileSync(`${ROOT}.nvmrc`, 'utf8')).toBe(`${node}\n`);
    for (const from of dockerfile.getFROMs()) expect(from.getImage()).toBe('$' + '{NODE_IMAGE}');
    const installs = argumentsOf(dependencies, 'RUN').filter((line) => /\b(install|npm|npx|pnpm)\b/.test(line));
    expect(installs).toHaveLength(2);
    for (const line of installs) expect(line).toMatch(/^node \/tools\/scripts\/pnpm\.mjs install --frozen-lockfile --prod /);
    const tools = ['scripts/checkout.mjs', 'scripts/run-child.mjs', 'scripts/package-manager.mjs', 'scripts/pnpm.mjs'];
    expect(copies(dependencies).filter((path) => tools.includes(path) && isSent(path))).toEqual([...tools, ...tools]);
  });

  it('runs Node.js itself as an unprivileged user, and has a health check', () => {
    expect(argumentsOf(final, 'USER')).toEqual([expect.stringMatching(/^[1-9]\d*:[1-9]\d*$/)]);
    expect([...argumentsOf(final, 'ENTRYPOINT'), ...argumentsOf(final, 'CMD')]).toEqual([
      '["node"]',
      `["services/gateway/src/main.ts"]`,
    ]);
    expect(argumentsOf(final, 'HEALTHCHECK')[0]).toMatch(/CMD \["node", "deploy\/container\/health\.ts", "healthz"\]$/);
  });

  it('listens on every address of its container', () => {
    expect(argumentsOf(final, 'ENV')[0]).toBe('NODE_ENV=production HOST=0.0.0.0 REALTIME_HOST=0.0.0.0');
  });

  it('is what Compose starts every service and step from', () => {
    const ours = Object.values(compose.services).filter(({ image }) => image.startsWith('latchkey:'));
    for (const { command = [] } of ours) expect(programs).toContain(command.find((word) => !word.startsWith('--')));
  });

  it('holds all files and packages that its programs need', () => {
    const { files, packages } = needed;
    const copied = copies(final);
    const isHeld = (file: string) => isSent(file) && copied.some((source) => file === source || file.startsWith(`${source}/`));
    expect([...files].filter((file) => !isHeld(file))).toEqual([]);
    for (const [workspace, names] of packages) {
      expect(copies(dependencies)).toContain(`${workspace}/package.json`);
      expect(Object.keys(manifestOf(workspace).dependencies ?? {})).toEqual(expect.arrayContaining([...names]));
    }
  });

  it('holds the built dashboard, and none of its build tools', () => {
    const built = (only(final, 'COPY') as Copy[]).filter((copy) => copy.getFromFlag()?.getValue() === 'dashboard');
    expect(built.map((copy) => copy.getRawArgumentsContent())).toEqual([
      '/app/packages/dashboard/dist/ packages/dashboard/dist/',
    ]);
    for (const path of [
      'packages/dashboard/src/main.tsx',
      'packages/client/src/browser.ts',
      'scripts/dashboard-sources.mjs',
      'tsconfig.json',
    ])
      expect([path, isSent(path)]).toEqual([path, true]);
    expect(copies(final).filter((path) => /dashboard|scripts/.test(path))).toEqual([]);
  });

  it('holds every program compiled, and what is loaded later, read-only for its user', () => {
    const compile = only(final, 'RUN').find((run) => run.getRawArgumentsContent()?.includes('NODE_COMPILE_CACHE')) as Instruction;
    const text = compile.getRawArgumentsContent() ?? '';
    const compiled = text.match(/[\w/*-]+\.ts/g) ?? [];
    const later = loadedLater(needed.files);
    expect(later.length).toBeGreaterThan(2);
    expect([...programs, ...later].filter((file) => !compiled.some((pattern) => matchesGlob(file, pattern)))).toEqual([]);
    expect(text).toMatch(/chown --recursive root:root .*\n.*chmod --recursive u=rwX,go=rX "\$NODE_COMPILE_CACHE"$/);
    const keywords = final.map((instruction) => instruction.getKeyword());
    expect(final.indexOf(compile)).toBeGreaterThan(keywords.lastIndexOf('COPY'));
    expect(final.indexOf(compile)).toBeLessThan(keywords.indexOf('USER'));
  });

  it('holds no test, no secret, and no local installation', () => {
    const sent = ['packages', 'services', 'proto', 'deploy', 'docs', 'scripts'].flatMap(filesBelow).filter(isSent);
    expect(
      sent.filter((file) =>
        /\.test\.ts$|\/testing\/|testkit|embedded|launcher|e2e|^docs|^scripts\/(?!dashboard-sources|checkout|run-child|package-manager|pnpm)|\.proto$/.test(
          file,
        ),
      ),
    ).toEqual([]);
    expect(
      ['.env', '.git/HEAD', 'node_modules/pg/package.json', 'services/files/node_modules/pg/package.json'].filter(isSent),
    ).toEqual([]);
  });
});

describe('the health check of a container', () => {
  const HEALTH = `${ROOT}deploy/container/health.ts`;

  /** Starts a server that answers probes, or does not, and gives its port. */
  async function startProbed(statusOf: (path: string) => number | undefined): Promise<string> {
    const server = createServer((req, res) => {
      const status = statusOf(req.url ?? '');
      if (status !== undefined) res.writeHead(status).end();
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => {
      server.closeAllConnections();
      server.close();
    });
    return String((server.address() as AddressInfo).port);
  }

  async function check(env: Record<string, string>, ...args: string[]): Promise<string> {
    const run = promisify(execFile)(process.execPath, [HEALTH, ...args], { env });
    return run.then(
      () => 'healthy',
      (err: { code: number; stderr: string }) => `${err.code} ${err.stderr.trim()}`,
    );
  }

  it('asks whether the process lives or is ready, at METRICS_PORT with TLS, and fails in time', async () => {
    const PORT = await startProbed((path) => (path === '/healthz' ? 200 : 503));
    const tls = { PORT: '1', SERVICE_TLS_CERT_FILE: '/tls.crt' };
    const [live, unready, unreachable, silent, overTls, without] = await Promise.all([
      check({ PORT }),
      check({ PORT }, 'readyz'),
      check({ PORT: '1' }),
      check({ PORT: await startProbed(() => undefined) }),
      check({ ...tls, METRICS_PORT: await startProbed(() => 200) }, 'readyz'),
      check(tls),
    ]);
    expect([live, overTls]).toEqual(['healthy', 'healthy']);
    expect(unready).toBe('1 /readyz answered 503.');
    expect(unreachable).toMatch(/^1 .*ECONNREFUSED/);
    expect(silent).toBe('1 /healthz: no answer in time');
    expect(without).toBe('1 METRICS_PORT is required for health checks with TLS.');
  });

  it('knows the default port of each service', () => {
    for (const service of SERVICES) {
      const { PORT } = readerOf([`services/${service}/src/main.ts`])?.(compose.services[service]?.environment ?? {}) ?? {};
      expect(readFileSync(HEALTH, 'utf8')).toMatch(new RegExp(`[ {]${service}: '${PORT}'`));
    }
  });
});
