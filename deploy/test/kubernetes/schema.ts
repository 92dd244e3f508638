import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type KubeObject, nameOf } from './objects.ts';

const run = promisify(execFile);
const DEPLOY_DIR = join(import.meta.dirname, '..', '..');
const TSC = join(DEPLOY_DIR, '..', 'node_modules', '.bin', 'tsc');
const TIMEOUT_MS = 120_000;

/** Packages of generated models, by API group; Kubernetes' own groups are in one. */
const PACKAGES: Readonly<Record<string, string>> = {
  'gateway.networking.k8s.io': '@kubernetes-models/gateway-api/gateway.networking.k8s.io',
  'monitoring.coreos.com': '@kubernetes-models/prometheus-operator/monitoring.coreos.com',
  'cert-manager.io': '@kubernetes-models/cert-manager/cert-manager.io',
};

/** The module with the types of an apiVersion, generated from the OpenAPI document of Kubernetes or from the resource definitions. */
function moduleOf(apiVersion: string): string {
  const [group = '', version] = apiVersion.split('/');
  const own = PACKAGES[group];
  return own ? `${own}/${version}` : `kubernetes-models/${apiVersion}`;
}

/**
 * What the API server would refuse, or with strict field validation warn of: fields that the schema does not know, fields that are missing, values of
 * another type. Each object becomes a literal of its kind's type, as the compiler takes a property that the type does not have for an error there,
 * which the OpenAPI document does not say.
 *
 * @returns a line for each problem, beginning with the object's kind and name
 */
export async function schemaProblems(objects: readonly KubeObject[]): Promise<string[]> {
  // Below the folder whose dependencies the types are.
  const dir = await mkdtemp(join(DEPLOY_DIR, 'node_modules', '.kubernetes-types-'));
  try {
    await Promise.all(objects.map((object, index) => writeFile(join(dir, `${index}.ts`), literal(object))));
    const compilerOptions = {
      strict: true,
      exactOptionalPropertyTypes: true,
      noEmit: true,
      skipLibCheck: true,
      module: 'nodenext',
      target: 'es2024',
      types: [],
    };
    await writeFile(join(dir, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['*.ts'] }));
    const said = await run(TSC, ['-p', dir, '--pretty', 'false'], {
      cwd: dir,
      maxBuffer: 16 * 1024 * 1024,
      timeout: TIMEOUT_MS,
    }).then(
      () => '',
      (err: { stdout?: string; code?: unknown }) => {
        if (err.stdout === undefined || typeof err.code !== 'number') throw err;
        return err.stdout;
      },
    );
    return said
      .split('\n')
      .filter((line) => /error TS/.test(line))
      .map((line) => line.replace(/^(?:.*\/)?(\d+)\.ts\(\d+,\d+\): error /, (_, index) => `${nameOf(objects[Number(index)])}: `));
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

function literal(object: KubeObject): string {
  const { apiVersion, kind } = object;
  return `import type { I${kind} } from '${moduleOf(apiVersion)}';\nexport const object: I${kind} = ${JSON.stringify(object, null, 1)};\n`;
}

interface Model {
  validate(): void;
}

/** The same models' own validation: formats, patterns and bounds, which types do not hold. */
export async function modelProblems(objects: readonly KubeObject[]): Promise<string[]> {
  const problems = await Promise.all(
    objects.map(async (object): Promise<string[]> => {
      const models: Record<string, new (data: KubeObject) => Model> = await import(moduleOf(object.apiVersion));
      const KindModel = models[object.kind];
      if (!KindModel) return [`${nameOf(object)}: ${object.apiVersion} has no such kind`];
      try {
        new KindModel(object).validate();
        return [];
      } catch (err) {
        return [`${nameOf(object)}: ${(err as Error).message}`];
      }
    }),
  );
  return problems.flat();
}
