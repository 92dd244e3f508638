import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { findGoProgram, goModuleDir } from '@latchkey/testkit/process/go-program';
import { parseAllDocuments } from 'yaml';
import type { KubeObject } from './objects.ts';

export const kubeconform = await findGoProgram({ name: 'github.com/yannh/kubeconform', version: 'v0.7.0' }, 'cmd/kubeconform');
export const kubeLinter = await findGoProgram({ name: 'golang.stackrox.io/kube-linter', version: 'v0.7.6' }, 'cmd/kube-linter');

const KUBERNETES = { name: 'k8s.io/kubernetes', version: 'v1.36.3' };
/** Modules that have definitions of other kinds, and the folder of these. */
const CUSTOM_RESOURCES = [
  [{ name: 'sigs.k8s.io/gateway-api', version: 'v1.6.3' }, 'config/crd/standard'],
  [{ name: 'github.com/prometheus-operator/prometheus-operator', version: 'v0.85.0' }, 'example/prometheus-operator-crd'],
  [{ name: 'github.com/cert-manager/cert-manager', version: 'v1.21.2' }, 'deploy/crds'],
] as const;

/** Runs a program on the objects, and gives its exit code and output. */
export async function judge(program: string, args: readonly string[], objects: readonly KubeObject[]) {
  return inTemporaryFolder(async (dir) => {
    const file = join(dir, 'objects.yaml');
    await writeFile(file, objects.map((object) => JSON.stringify(object)).join('\n---\n'));
    const options = { maxBuffer: 16 * 1024 * 1024, timeout: 120_000 };
    return promisify(execFile)(program, [...args, file], options).then(
      ({ stdout }) => ({ code: 0, output: stdout }),
      ({ code, stdout, stderr }) => ({ code, output: `${stdout}${stderr}` }),
    );
  });
}

/** Unknown fields, missing fields and values of another type, by the schemas of Kubernetes. */
export function validate(program: string, objects: readonly KubeObject[]) {
  return inTemporaryFolder(async (dir) => {
    await writeSchemas(dir);
    return judge(program, ['-summary', '-schema-location', `${dir}/{{.ResourceKind}}{{.KindSuffix}}.json`], objects);
  });
}

interface Schema {
  readonly 'x-kubernetes-group-version-kind'?: ReadonlyArray<{ group: string; version: string; kind: string }>;
  readonly [field: string]: unknown;
}

/** Writes a JSON Schema of each kind, which permits no other fields. */
async function writeSchemas(dir: string): Promise<void> {
  const write = (kind: string, group: string, version: string, schema: unknown) => {
    const names = [kind, ...(group === '' ? [] : [group.split('.')[0]]), version];
    return writeFile(join(dir, `${names.join('-').toLowerCase()}.json`), JSON.stringify(schema, strict));
  };
  const swagger = await readFile(join(await goModuleDir(KUBERNETES), 'api/openapi-spec/swagger.json'), 'utf8');
  const { definitions } = JSON.parse(swagger) as { definitions: Record<string, Schema> };
  await writeFile(join(dir, 'definitions.json'), JSON.stringify({ definitions }, strict));
  for (const [name, schema] of Object.entries(definitions)) {
    for (const { kind, group, version } of schema['x-kubernetes-group-version-kind'] ?? []) {
      await write(kind, group, version, { $ref: `definitions.json#/definitions/${name}` });
    }
  }
  for (const [module, folder] of CUSTOM_RESOURCES) {
    const source = join(await goModuleDir(module), folder);
    for (const file of (await readdir(source)).filter((name) => name.endsWith('.yaml'))) {
      for (const document of parseAllDocuments(await readFile(join(source, file), 'utf8'))) {
        const { kind, spec } = document.toJS() ?? {};
        if (kind !== 'CustomResourceDefinition') continue;
        for (const { name, schema } of spec.versions) await write(spec.names.kind, spec.group, name, schema.openAPIV3Schema);
      }
    }
  }
}

/** The types that OpenAPI 2 can't express, and no unknown fields. */
function strict(key: string, value: Schema): unknown {
  if (key === 'description' && typeof value === 'string') return undefined;
  if (value?.format === 'int-or-string' || value?.['x-kubernetes-int-or-string'] === true)
    return { ...value, type: ['string', 'integer'], format: undefined };
  const isClosed = value?.type === 'object' && value.properties && !value['x-kubernetes-preserve-unknown-fields'];
  return isClosed ? { additionalProperties: false, ...value } : value;
}

async function inTemporaryFolder<T>(use: (dir: string) => Promise<T>): Promise<T> {
  const dir = await mkdtemp(join(tmpdir(), 'latchkey-kubernetes-'));
  try {
    return await use(dir);
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}
