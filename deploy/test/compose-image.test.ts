import { existsSync, readFileSync } from 'node:fs';
import { join, matchesGlob } from 'node:path';
import { type Copy, DockerfileParser, type Instruction } from 'dockerfile-ast';
import { describe, expect, it } from 'vitest';
import { ROOT, readComposeFile } from './compose/compose-file.ts';
import { makeEnv } from './compose/example-env.ts';
import { filesBelow, isSent, loadedLater, manifestOf, neededBy } from './compose/image-contents.ts';
import { SERVICES } from './compose/services.ts';

const dockerfile = DockerfileParser.parse(readFileSync(`${ROOT}deploy/Dockerfile`, 'utf8'));
const instructions = dockerfile.getInstructions();
const lastFrom = instructions.findLastIndex((instruction) => instruction.getKeyword() === 'FROM');
const dependencies = instructions.slice(0, lastFrom);
const final = instructions.slice(lastFrom);
const only = (stage: Instruction[], keyword: string) => stage.filter((instruction) => instruction.getKeyword() === keyword);
const copies = (stage: Instruction[]) =>
  (only(stage, 'COPY') as Copy[])
    .filter((copy) => copy.getFromFlag() === null)
    .flatMap((copy) =>
      copy
        .getArguments()
        .slice(0, -1)
        .map((argument) => argument.getValue().replace(/\/$/, '')),
    );

/** What of ours can be started in a container: the services, the steps of a deployment, and the health check. */
const programs = [
  ...SERVICES.map((name) => `services/${name}/src/main.ts`),
  ...filesBelow('deploy/setup'),
  ...filesBelow('deploy/container'),
];

describe('the image', () => {
  it('has a base of one version, that of the Node.js everything is tested on', () => {
    const [arg] = only(instructions, 'ARG');
    const node = /^ {2}node: (.+)$/m.exec(readFileSync(`${ROOT}pnpm-workspace.yaml`, 'utf8'))?.[1];
    expect(arg?.getArgumentsContent()).toBe(`NODE_IMAGE=docker.io/library/node:${node}-trixie-slim`);
    for (const from of dockerfile.getFROMs()) expect(from.getImage()).toMatch(/^\$\{NODE_IMAGE\}$/);
    expect(readFileSync(`${ROOT}deploy/Dockerfile`, 'utf8')).not.toMatch(/:latest/);
  });

  it('is installed with the package manager that the repository is', () => {
    const pinned = /'(pnpm@[\d.]+)'/.exec(readFileSync(`${ROOT}scripts/install.mjs`, 'utf8'))?.[1] ?? 'none';
    const runs = only(dependencies, 'RUN').map((run) => run.getArgumentsContent());
    expect(runs[0]).toContain(` ${pinned}`);
    expect(runs[1]).toMatch(/^pnpm install --frozen-lockfile --prod /);
  });

  it('runs as a user who is a number and not root', () => {
    expect(only(final, 'USER').map((user) => user.getArgumentsContent())).toEqual([expect.stringMatching(/^[1-9]\d*:[1-9]\d*$/)]);
  });

  it('starts Node.js itself, which so gets the signals, and is checked by it', () => {
    const [entrypoint] = only(final, 'ENTRYPOINT');
    const [command] = only(final, 'CMD');
    expect(JSON.parse(entrypoint?.getArgumentsContent() ?? '')).toEqual(['node']);
    expect(JSON.parse(command?.getArgumentsContent() ?? '')).toEqual(['services/gateway/src/main.ts']);
    const [check] = only(final, 'HEALTHCHECK');
    expect(check?.getRawArgumentsContent()).toMatch(/CMD \["node", "deploy\/container\/health\.ts", "healthz"\]$/);
  });

  it('copies what is there, and what the builder is sent', () => {
    for (const source of [...copies(dependencies), ...copies(final)]) {
      expect([source, existsSync(join(ROOT, source))]).toEqual([source, true]);
      expect([source, filesBelow(source).some(isSent)]).toEqual([source, true]);
    }
  });

  it.each(programs)('holds all that %s needs', (program) => {
    const { files, packages } = neededBy(program);
    const copied = copies(final);
    const held = (file: string) => isSent(file) && copied.some((source) => file === source || file.startsWith(`${source}/`));
    expect([...files].filter((file) => !held(file))).toEqual([]);
    for (const [workspace, names] of packages) {
      expect(copies(dependencies)).toContain(`${workspace}/package.json`);
      expect(Object.keys(manifestOf(workspace).dependencies ?? {})).toEqual(expect.arrayContaining([...names]));
    }
  });

  it('holds every program compiled, as its user reads it and may not write it, and what is loaded later', () => {
    const [compile] = only(final, 'RUN').filter((run) => run.getArgumentsContent()?.includes('NODE_COMPILE_CACHE'));
    const text = compile?.getRawArgumentsContent() ?? '';
    const compiled = text.match(/[\w/*-]+\.ts/g) ?? [];
    const later = loadedLater(programs.flatMap((program) => [...neededBy(program).files]));
    expect(later).toContain('packages/kit/src/telemetry/export-traces.ts');
    const missing = [...programs, ...later].filter((file) => !compiled.some((pattern) => matchesGlob(file, pattern)));
    expect(missing).toEqual([]);
    const [user = ''] = only(final, 'USER').map((instruction) => instruction.getArgumentsContent()?.split(':')[0]);
    expect(text).toContain(`setpriv --reuid ${user} `);
    expect(text).toMatch(/chown --recursive root:root .*\n.*chmod --recursive u=rwX,go=rX "\$NODE_COMPILE_CACHE"$/);
    const keywords = final.map((instruction) => instruction.getKeyword());
    expect(final.indexOf(compile as Instruction)).toBeGreaterThan(keywords.lastIndexOf('COPY'));
    expect(final.indexOf(compile as Instruction)).toBeLessThan(keywords.indexOf('USER'));
  });

  it('looks at more than the programs themselves for that', () => {
    const { files, packages } = neededBy('services/files/src/main.ts');
    expect([...files]).toEqual(
      expect.arrayContaining(['packages/kit/src/config/settings.ts', 'proto/gen/latchkey/files/v1/file_pb.js']),
    );
    expect([...files]).toContain('services/files/src/avatar/decoder/decoder-process.ts');
    expect([...(packages.get('services/files') ?? [])]).toEqual(expect.arrayContaining(['sharp', '@aws-sdk/client-s3']));
  });

  it('holds no test, nothing for tests, and nothing that was installed here', () => {
    const sent = ['packages', 'services', 'proto', 'deploy', 'docs', 'scripts'].flatMap(filesBelow).filter(isSent);
    expect(
      sent.filter((file) => /\.test\.ts$|\/testing\/|testkit|embedded|standalone|^docs|^scripts|\.proto$/.test(file)),
    ).toEqual([]);
    expect(
      ['.env', '.git/HEAD', 'node_modules/pg/package.json', 'services/files/node_modules/pg/package.json'].filter(isSent),
    ).toEqual([]);
  });

  it('is what Compose starts every service and step from, with programs that are in it', () => {
    for (const { image, command = [] } of Object.values(readComposeFile(makeEnv()).services)) {
      if (image.startsWith('latchkey:')) expect(programs).toContain(command[0]);
    }
  });
});
