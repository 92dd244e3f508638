import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { findGoProgram } from '@latchkey/testkit/process/go-program';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { makeEnv, parseCompose, parseEnv, ROOT, readComposeFile, readComposeText } from './compose/compose-file.ts';
import { type Reader, readerOf, SERVICES, serviceOf, watchReader } from './programs.ts';

/** The parser of `docker compose`. */
const composeGo = await findGoProgram({ name: 'github.com/compose-spec/compose-go/v2', version: 'v2.9.1' }, 'cmd');
const reason = typeof composeGo === 'string' ? '' : ` (${composeGo.unavailable})`;

const env = makeEnv();
const compose = readComposeFile(env);
const services = Object.entries(compose.services).map(([name, service]) => ({ name, ...service }));
const steps = services.filter(({ restart }) => restart?.startsWith('on-failure')).map(({ name }) => name);
/** The processes of services, and their migrations. */
const containers = services.flatMap((container) => {
  const { command = [], environment = {} } = container;
  const [service, read] = [serviceOf(command), readerOf(command)];
  return service && read ? [{ ...container, service, read, command, environment, isMigration: command[1] === 'migrate' }] : [];
});
const configOf = (name: string) => {
  const { read, environment } = containers.find((container) => container.name === name) as { read: Reader; environment: object };
  return read(environment as NodeJS.ProcessEnv);
};

describe('docker-compose.yml', () => {
  it.skipIf(reason)(`is valid by the Compose Specification${reason}`, () => {
    const args = ['--no-interpolation', `${ROOT}docker-compose.yml`];
    expect(execFileSync(composeGo as string, args, { encoding: 'utf8' })).toContain('name: latchkey');
  });

  it('pins every image to one version, and builds ours once, before it is used', () => {
    for (const { image } of services) expect(image).toMatch(/:v?\d+\.\d+(\.\d+)?$/);
    const ours = services.filter(({ image }) => image.startsWith('latchkey:'));
    expect(ours.filter(({ build }) => build !== undefined).map(({ name }) => name)).toEqual(['database-roles']);
    expect(new Set(ours.map(({ image }) => image)).size).toBe(1);
  });

  it('starts a service after every step is done and what its settings name is healthy', () => {
    const awaited = new Set<string>();
    for (const { name, depends_on = {}, environment = {} } of services) {
      for (const [needed, { condition }] of Object.entries(depends_on)) {
        awaited.add(needed);
        const isStep = steps.includes(needed);
        expect([needed, condition]).toEqual([needed, isStep ? 'service_completed_successfully' : 'service_healthy']);
        expect([needed, isStep || compose.services[needed]?.healthcheck?.test !== undefined]).toEqual([needed, true]);
      }
      if (steps.includes(name)) continue;
      const urls = Object.entries(environment).filter(([setting, value]) => !setting.includes('PUBLIC_') && URL.canParse(value));
      const hosts = urls.map(([, value]) => new URL(value).hostname).filter((host) => host in compose.services);
      expect([name, Object.keys(depends_on)]).toEqual([name, expect.arrayContaining(hosts)]);
    }
    expect(steps.filter((name) => !awaited.has(name))).toEqual([]);
  });

  it('publishes the gateway, live events and downloads only, on this machine', () => {
    expect(services.flatMap(({ name, ports = [] }) => ports.map((port) => [name, port]))).toEqual([
      ['s3', '127.0.0.1:7070:7070'],
      ['gateway', '127.0.0.1:8080:8080'],
      ['realtime', '127.0.0.1:8081:8081'],
    ]);
    expect(compose.networks.backend?.internal).toBe(true);
    const elsewhere = services.filter(({ networks }) => networks.some((network) => network !== 'backend'));
    expect(elsewhere.map(({ name }) => name).sort()).toEqual(['gateway', 'identity', 'realtime', 's3']);
  });

  it('gives no container a capability, a writable root or unbounded resources, and restarts it', () => {
    for (const service of services) {
      expect(service).toMatchObject({
        read_only: true,
        cap_drop: ['ALL'],
        security_opt: ['no-new-privileges:true'],
        mem_limit: expect.stringMatching(/^\d+[mg]$/),
        pids_limit: expect.any(Number),
        logging: { options: { 'max-size': expect.any(String) } },
        restart: expect.stringMatching(/^(unless-stopped|on-failure:5)$/),
      });
      for (const name of ['cap_add', 'privileged']) expect(service).not.toHaveProperty(name);
    }
  });

  it('limits the memory of each process as Kubernetes does', () => {
    const { workloads, migrations } = parse(readFileSync(`${ROOT}deploy/helm/latchkey/values.yaml`, 'utf8'));
    const limits = Object.entries<typeof migrations>({
      ...workloads,
      ...Object.fromEntries(['apps', 'files', 'identity'].map((name) => [`migrate-${name}`, migrations])),
    }).map(([name, { resources }]) => [name, resources.limits.memory]);
    expect(limits).toHaveLength(containers.length);
    for (const [name, limit] of limits) {
      expect([name, compose.services[name]?.mem_limit]).toEqual([name, limit.replace('Gi', 'g').replace('Mi', 'm')]);
    }
  });

  it('stores the data of each server in a volume, and queues in a Redis that never evicts', () => {
    const mounts = ['postgres', 'redis', 's3'].map((name) => compose.services[name]?.volumes?.[0]);
    expect(mounts).toEqual(['postgres:/var/lib/postgresql', 'redis:/data', 'objects:/data']);
    expect(Object.keys(compose.volumes)).toEqual(['postgres', 'redis', 'objects']);
    const redis = readFileSync(`${ROOT}deploy/compose/redis.conf`, 'utf8').split('\n');
    expect(redis).toEqual(
      expect.arrayContaining(['appendonly yes', 'maxmemory-policy noeviction', 'include /tmp/password.conf']),
    );
  });
});

describe('the settings in docker-compose.yml', () => {
  it('start every service, the avatar worker and the migrations', () => {
    expect([...new Set(containers.map(({ service }) => service))].sort()).toEqual(SERVICES.toSorted());
    const commands = containers.flatMap(({ command }) => command.filter((word) => !word.startsWith('--')).slice(1)).sort();
    expect(commands).toEqual(['avatar-worker', 'migrate', 'migrate', 'migrate']);
  });

  it.each(containers)('are all that $name requires, and none that it does not read', ({ read, environment }) => {
    const { names, problems } = watchReader(read, environment);
    expect([problems, Object.keys(environment).filter((name) => !names.has(name))]).toEqual([[], []]);
  });

  it.each(containers.filter(({ environment }) => environment.DATABASE_URL))(
    'give $name its own role, and leave migrations to their steps',
    ({ service, environment, isMigration }) => {
      const { username, password } = new URL(environment.DATABASE_URL ?? '');
      expect([username, password]).toEqual([service, env[`${service.toUpperCase()}_DATABASE_PASSWORD`]]);
      if (!isMigration) expect(environment.MIGRATE_ON_START).toBe('false');
      expect(containers.map(({ name }) => name)).toContain(`migrate-${service}`);
    },
  );

  it('let other containers call every service', () => {
    for (const name of SERVICES) expect([name, configOf(name).HOST]).toEqual([name, '0.0.0.0']);
    expect(configOf('realtime').REALTIME_HOST).toBe('0.0.0.0');
  });

  it('name the ports that the services listen on', () => {
    for (const target of ['apps', 'files', 'identity']) {
      for (const { environment } of containers) {
        const url = environment[`${target.toUpperCase()}_URL`];
        if (url) expect(url).toBe(`http://${target}:${configOf(target).PORT}`);
      }
    }
    const publishedBy = (name: string) => compose.services[name]?.ports?.[0]?.split(':').at(-1);
    expect(publishedBy('gateway')).toBe(String(configOf('gateway').PORT));
    expect(publishedBy('realtime')).toBe(String(configOf('realtime').REALTIME_PORT));
    for (const { environment } of containers.filter(({ service, isMigration }) => service === 'files' && !isMigration)) {
      expect(environment).toMatchObject({ S3_ENDPOINT: `http://s3:${publishedBy('s3')}`, AVATAR_WORKER: 'apart' });
    }
  });

  it('give uploads and calls time to end before a container is killed', () => {
    const [callSeconds, slackSeconds] = [60, 35];
    for (const { name, stop_grace_period = '' } of containers.filter(({ isMigration }) => !isMigration)) {
      const { UPLOAD_DEADLINE_SECONDS = 0, DRAIN_SECONDS = 0 } = configOf(name);
      const uploadSeconds = ['gateway', 'files'].includes(name) ? UPLOAD_DEADLINE_SECONDS + DRAIN_SECONDS : 0;
      expect(secondsOf(stop_grace_period)).toBeGreaterThanOrEqual(Math.max(uploadSeconds, callSeconds) + slackSeconds);
    }
  });
});

describe('the secrets of docker-compose.yml', () => {
  const required = [...new Set([...readComposeText().matchAll(/\$\{(\w+):\?/g)].map(([, name = '']) => name))];
  const example = parseEnv(readFileSync(`${ROOT}deploy/compose/.env.example`, 'utf8'));

  it('are created by one command, all of them, anew each time, and long', () => {
    const secrets = required.filter((name) => example[name] === '');
    const another = makeEnv();
    for (const name of secrets) expect([name, env[name]]).toEqual([name, expect.stringMatching(/^[0-9a-f]{20,}$/)]);
    expect(new Set(secrets.flatMap((name) => [env[name], another[name]])).size).toBe(20);
    const used = new Set([...readComposeText().matchAll(/\$\{(\w+)/g)].map(([, name]) => name));
    expect(Object.keys(example).filter((name) => !used.has(name))).toEqual([]);
  });

  it('are required, with the name of the command that creates them', () => {
    for (const name of required) {
      const incomplete = { ...env, [name]: '' };
      expect(() => readComposeFile(incomplete)).toThrow(`${name} is required: run deploy/compose/make-env.sh`);
    }
  });

  it('are not in it', () => {
    const isSecret = ([name, text]: readonly [string, string]) =>
      /PASSWORD|SECRET|CREDENTIALS|TOKEN|ACCESS_KEY|REDISCLI_AUTH/.test(name) || /^(postgres|redis):\/\/.*@/.test(text);
    const texts = leavesOf(parseCompose(readComposeText())).filter(isSecret);
    expect(texts.length).toBeGreaterThan(12);
    for (const [name, text] of texts) {
      expect([name, text]).toEqual([name, expect.stringMatching(/^(\w+:\/\/\w*:)?\$\{\w+:\?[^}]+\}(@.*)?$/)]);
    }
  });
});

/** A duration such as `1m30s`, in seconds. */
function secondsOf(duration: string): number {
  const parts = [...duration.matchAll(/(\d+)([hms])/g)];
  return parts.reduce((sum, [, n, unit]) => sum + Number(n) * { h: 3_600, m: 60, s: 1 }[unit as 'h' | 'm' | 's'], 0);
}

/** Names and texts below a value, however deep. */
function leavesOf(value: unknown, name = ''): Array<readonly [string, string]> {
  if (typeof value === 'string') return [[name, value]];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, item]) => leavesOf(item, key));
}
