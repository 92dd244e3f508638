import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parseCompose, ROOT, readComposeFile, readComposeText, requiredVariables, secondsOf } from './compose/compose-file.ts';
import { makeEnv, parseEnv } from './compose/example-env.ts';
import { readAsService, SERVICES, serviceOf } from './compose/services.ts';

const env = makeEnv();
const compose = readComposeFile(env);
/** What runs on, and what ends by itself. */
const isMigration = ({ program }: { readonly program: string }) => program === 'migrate';
const containers = Object.entries(compose.services).flatMap(([name, definition]) => {
  const service = serviceOf(definition.command);
  const program = definition.command?.[1] ?? service;
  return service && program ? [{ name, service, program, ...definition, environment: definition.environment ?? {} }] : [];
});

/** How long an ordered stop waits for uploads beyond their deadline, in seconds; and time to end after that. */
const STOP_SLACK_SECONDS = 30;
const STOP_MARGIN_SECONDS = 5;
/** Longest time that any call may take. */
const CALL_SECONDS = 60;

describe('the settings in docker-compose.yml', () => {
  it('are there for every service, and for what they do beside', () => {
    expect([...new Set(containers.map(({ service }) => service))].sort()).toEqual(SERVICES.toSorted());
    expect(
      containers
        .map(({ command }) => command?.slice(1).join(' '))
        .filter(Boolean)
        .sort(),
    ).toEqual(['avatar-worker', 'migrate', 'migrate', 'migrate']);
  });

  it.each(containers)('are all that $name requires, and none that it does not read', ({ program, environment }) => {
    const { names } = readAsService(program, environment);
    expect(Object.keys(environment).filter((name) => !names.has(name))).toEqual([]);
  });

  it('leave migrations to their steps', () => {
    const migrating = containers.filter(({ environment }) => 'DATABASE_URL' in environment);
    for (const { environment } of migrating.filter((each) => !isMigration(each)))
      expect(environment).toMatchObject({ MIGRATE_ON_START: 'false' });
    for (const { service } of migrating) expect(migrating.map(({ name }) => name)).toContain(`migrate-${service}`);
  });

  it('give each service the role of its own schema and no other', () => {
    for (const { service, environment } of containers) {
      if (!environment.DATABASE_URL) continue;
      const url = new URL(environment.DATABASE_URL);
      expect([service, url.username, url.password]).toEqual([
        service,
        service,
        env[`${service.toUpperCase()}_DATABASE_PASSWORD`],
      ]);
    }
  });

  it('name the ports that the services take', () => {
    for (const { environment } of containers) {
      for (const target of ['apps', 'files', 'identity']) {
        const url = environment[`${target.toUpperCase()}_URL`];
        if (!url) continue;
        const own = containers.find(({ name }) => name === target);
        const { config } = readAsService(target, own?.environment ?? {});
        expect([new URL(url).hostname, new URL(url).port]).toEqual([target, String(config.PORT)]);
      }
    }
    const publishedBy = (name: string) => compose.services[name]?.ports?.[0]?.split(':').at(-1);
    const configOf = (name: string) => readAsService(name, compose.services[name]?.environment ?? {}).config;
    expect(publishedBy('gateway')).toBe(String(configOf('gateway').PORT));
    for (const { environment } of containers.filter((each) => each.service === 'files' && !isMigration(each))) {
      expect(environment).toMatchObject({ S3_ENDPOINT: `http://s3:${publishedBy('s3')}` });
      expect(new URL(environment.S3_PUBLIC_ENDPOINT ?? '').port).toBe(compose.services.s3?.ports?.[0]?.split(':').at(-2));
    }
    expect(publishedBy('realtime')).toBe(String(configOf('realtime').REALTIME_PORT));
  });

  it('let uploads and calls end before a container is killed', () => {
    for (const { name, program, environment, stop_grace_period } of containers) {
      if (program === 'migrate') continue;
      const { config } = readAsService(program, environment);
      const carriesUploads = ['gateway', 'files'].includes(name);
      const uploadSeconds = carriesUploads ? Number(config.UPLOAD_DEADLINE_SECONDS) + Number(config.DRAIN_SECONDS ?? 0) : 0;
      const longest = Math.max(uploadSeconds, CALL_SECONDS) + STOP_SLACK_SECONDS;
      expect([name, secondsOf(stop_grace_period ?? '') >= longest + STOP_MARGIN_SECONDS]).toEqual([name, true]);
    }
  });

  it('have every process measured', () => {
    for (const { name, program, environment } of containers.filter((each) => !isMigration(each))) {
      expect([name, readAsService(program, environment).metrics]).toEqual([
        name,
        { host: '0.0.0.0', port: 9464, token: env.METRICS_TOKEN },
      ]);
    }
  });

  it('have avatars made by the worker', () => {
    for (const { service, program, environment } of containers) {
      if (service === 'files' && program !== 'migrate') expect(environment).toMatchObject({ AVATAR_WORKER: 'apart' });
    }
    expect(compose.services['avatar-worker']?.command).toEqual(['services/files/src/main.ts', 'avatar-worker']);
  });
});

describe('the secrets of docker-compose.yml', () => {
  const required = requiredVariables(readComposeText());
  const example = parseEnv(readFileSync(`${ROOT}deploy/compose/.env.example`, 'utf8'));

  it('are made by one command, all of them, anew each time, and long', () => {
    const secrets = required.filter((name) => example[name] === '');
    const another = makeEnv();
    for (const name of secrets) {
      expect([name, env[name]]).toEqual([name, expect.stringMatching(/^[0-9a-f]{20,}$/)]);
      expect(env[name]).not.toBe(another[name]);
    }
    expect(new Set(secrets.map((name) => env[name])).size).toBe(secrets.length);
    expect(secrets).toHaveLength(10);
  });

  it.each(required)('are missed at once: %s', (name) => {
    expect(() => readComposeFile({ ...env, [name]: '' })).toThrow(`${name} is required: run deploy/compose/make-env.sh`);
  });

  it('stand nowhere in it', () => {
    const texts = leavesOf(parseCompose(readComposeText())).filter(([name]) =>
      /PASSWORD|SECRET|CREDENTIALS|TOKEN|ACCESS_KEY|REDISCLI_AUTH/.test(name),
    );
    expect(texts.length).toBeGreaterThan(9);
    for (const [name, text] of texts) expect([name, text]).toEqual([name, expect.stringMatching(/^\$\{\w+:\?[^}]+\}$/)]);
    const urls = leavesOf(parseCompose(readComposeText())).filter(([, text]) => /^(postgres|redis):\/\/.*@/.test(text));
    for (const [name, text] of urls)
      expect([name, text]).toEqual([name, expect.stringMatching(/^\w+:\/\/\w*:\$\{\w+:\?[^}]+\}@/)]);
  });

  it('has nothing in the example that the file does not use', () => {
    const used = new Set([...readComposeText().matchAll(/\$\{(\w+)/g)].map(([, name]) => name));
    expect(Object.keys(example).filter((name) => !used.has(name))).toEqual([]);
  });
});

/** Names and texts below a value, however deep. */
function leavesOf(value: unknown, name = ''): Array<[string, string]> {
  if (typeof value === 'string') return [[name, value]];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, item]) => leavesOf(item, key));
}
