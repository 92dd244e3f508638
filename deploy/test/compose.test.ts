import { readFileSync } from 'node:fs';
import { Ajv } from 'ajv';
import addFormats from 'ajv-formats';
import { describe, expect, it } from 'vitest';
import { type ComposeService, parseCompose, ROOT, readComposeFile, readComposeText } from './compose/compose-file.ts';
import { makeEnv } from './compose/example-env.ts';
import { memoryLimitOf } from './compose/memory-limit.ts';

const compose = readComposeFile(makeEnv());
const services = Object.entries(compose.services);
/** What there is on Kubernetes as well. */
const processes = [
  'apps',
  'identity',
  'files',
  'avatar-worker',
  'realtime',
  'gateway',
  'migrate-apps',
  'migrate-files',
  'migrate-identity',
];
const steps = services.filter(([, { restart }]) => restart?.startsWith('on-failure'));

/** The schema's own strictness: a misspelt name is one that it does not know. */
function problemsOf(document: unknown): string[] {
  const { $schema: _, ...schema } = JSON.parse(readFileSync(`${ROOT}deploy/test/compose/schema/compose-spec.json`, 'utf8'));
  const ajv = new Ajv({ allErrors: true, strict: false });
  addFormats.default(ajv);
  for (const name of ['ports', 'expose', 'duration', 'subnet_ip_address']) ajv.addFormat(name, true);
  const validate = ajv.compile(schema);
  return validate(document) ? [] : (validate.errors ?? []).map((err) => `${err.instancePath} ${err.message}`);
}

describe('docker-compose.yml', () => {
  it('is what the Compose Specification allows', () => {
    expect(problemsOf(parseCompose(readComposeText()))).toEqual([]);
    expect(problemsOf(compose)).toEqual([]);
  });

  it('would not be with a misspelt name', () => {
    const misspelt = readComposeText().replace('stop_grace_period: 60s', 'stop_grace_periode: 60s');
    expect(problemsOf(parseCompose(misspelt))).toContainEqual(expect.stringContaining('additional properties'));
  });

  it('pins every image to one version', () => {
    for (const [, { image }] of services) expect(image).toMatch(/:v?\d+\.\d+(\.\d+)?$/);
  });

  it('builds the image once, before anything else wants it', () => {
    const ours = services.filter(([, { image }]) => image.startsWith('latchkey:'));
    const building = ours.filter(([, { build }]) => build !== undefined);
    expect(building.map(([name]) => name)).toEqual(['database-roles']);
    expect(new Set(ours.map(([, { image }]) => image)).size).toBe(1);
  });

  it('waits for what is depended on to be ready, or done', () => {
    for (const [, { depends_on = {} }] of services) {
      for (const [name, { condition }] of Object.entries(depends_on)) {
        const isStep = steps.some(([step]) => step === name);
        expect([name, condition]).toEqual([name, isStep ? 'service_completed_successfully' : 'service_healthy']);
        const { healthcheck } = compose.services[name] as ComposeService;
        expect([name, isStep || healthcheck?.test !== undefined]).toEqual([name, true]);
      }
    }
  });

  it('starts nothing before what its settings name', () => {
    for (const [service, definition] of services) {
      if (steps.some(([step]) => step === service)) continue;
      const urls = Object.entries(definition.environment ?? {}).filter(
        ([name, value]) => !name.includes('PUBLIC_') && URL.canParse(value),
      );
      const hosts = urls.map(([, value]) => new URL(value).hostname).filter((host) => host in compose.services);
      expect([service, Object.keys(definition.depends_on ?? {})]).toEqual([service, expect.arrayContaining(hosts)]);
    }
  });

  it('has every step done before somebody starts', () => {
    const awaited = new Set(services.flatMap(([, { depends_on = {} }]) => Object.keys(depends_on)));
    expect(steps.map(([name]) => name).filter((name) => !awaited.has(name))).toEqual([]);
  });

  it('publishes the gateway, live events and downloads, on this machine only unless told otherwise, and nothing else', () => {
    const published = services.flatMap(([name, { ports = [] }]) => ports.map((port) => [name, port]));
    expect(published).toEqual([
      ['s3', '127.0.0.1:7070:7070'],
      ['gateway', '127.0.0.1:8080:8080'],
      ['realtime', '127.0.0.1:8081:8081'],
    ]);
  });

  it('keeps everything but the published services, and identity for its issuers, on a network without a way out', () => {
    expect(compose.networks.backend?.internal).toBe(true);
    const elsewhere = services.filter(([, { networks }]) => networks.some((network) => network !== 'backend'));
    expect(elsewhere.map(([name]) => name).sort()).toEqual(['gateway', 'identity', 'realtime', 's3']);
    for (const [, { networks }] of services) expect(Object.keys(compose.networks)).toEqual(expect.arrayContaining([...networks]));
  });

  it('gives no container a right, a writable root or an unbounded share', () => {
    for (const [name, service] of services) {
      expect([name, service]).toEqual([
        name,
        expect.objectContaining({
          read_only: true,
          cap_drop: ['ALL'],
          security_opt: ['no-new-privileges:true'],
          mem_limit: expect.stringMatching(/^\d+[mg]$/),
          pids_limit: expect.any(Number),
          logging: expect.objectContaining({ options: expect.objectContaining({ 'max-size': expect.any(String) }) }),
        }),
      ]);
      expect(service).not.toHaveProperty('cap_add');
      expect(service).not.toHaveProperty('privileged');
    }
  });

  it('bounds the memory of each process as Kubernetes does', () => {
    const limits = services.flatMap(([name, { mem_limit }]) => {
      const limit = memoryLimitOf(name);
      return limit === undefined ? [] : [[name, mem_limit, limit.replace('Gi', 'g').replace('Mi', 'm')]];
    });
    expect(limits.map(([name]) => name).sort()).toEqual(processes.toSorted());
    for (const [name, own, wanted] of limits) expect([name, own]).toEqual([name, wanted]);
  });

  it('starts again what ended, and a step that failed for a while', () => {
    for (const [name, { restart }] of services)
      expect([name, restart]).toEqual([name, expect.stringMatching(/^(unless-stopped|on-failure:5)$/)]);
  });

  it('keeps the data of every server in a volume of its own', () => {
    const mounts = ['postgres', 'redis', 's3'].map((name) => compose.services[name]?.volumes?.[0]);
    expect(mounts).toEqual(['postgres:/var/lib/postgresql', 'redis:/data', 'objects:/data']);
    expect(Object.keys(compose.volumes)).toEqual(['postgres', 'redis', 'objects']);
  });

  it('has queues in a Redis that evicts nothing and keeps what it answered', () => {
    const settings = readFileSync(`${ROOT}deploy/compose/redis.conf`, 'utf8').split('\n');
    expect(settings).toEqual(
      expect.arrayContaining(['appendonly yes', 'maxmemory-policy noeviction', 'include /tmp/password.conf']),
    );
  });
});
