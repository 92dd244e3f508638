import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type KubeObject, nameOf } from './objects.ts';

const DEPLOY_DIR = join(import.meta.dirname, '..', '..');
const TSC = join(DEPLOY_DIR, '..', 'node_modules', '.bin', 'tsc');

/** Packages of generated models, by API group; Kubernetes' own groups are in one. */
const PACKAGES: Readonly<Record<string, string>> = {
  'gateway.networking.k8s.io': '@kubernetes-models/gateway-api/gateway.networking.k8s.io',
  'monitoring.coreos.com': '@kubernetes-models/prometheus-operator/monitoring.coreos.com',
  'cert-manager.io': '@kubernetes-models/cert-manager/cert-manager.io',
};

function moduleOf(apiVersion: string): string {
  const [group = '', version] = apiVersion.split('/');
  return PACKAGES[group] ? `${PACKAGES[group]}/${version}` : `kubernetes-models/${apiVersion}`;
}

/**
 * Unknown fields, missing fields and values of another type, by the types of each kind. The
 * compiler rejects unknown properties of a literal, which the OpenAPI document of Kubernetes does
 * not.
 */
export async function schemaProblems(objects: readonly KubeObject[]): Promise<string[]> {
  const distinct = [...new Map(objects.map((object) => [JSON.stringify(object), object]))];
  // Below the folder whose dependencies the types are.
  const dir = await mkdtemp(join(DEPLOY_DIR, 'node_modules', '.kubernetes-types-'));
  try {
    const literals = distinct.map(([text, { apiVersion, kind }], index) => {
      const type = `import('${moduleOf(apiVersion)}').I${kind}`;
      return writeFile(join(dir, `${index}.ts`), `export const object: ${type} = ${text};\n`);
    });
    await Promise.all(literals);
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
    const limits = { cwd: dir, maxBuffer: 16 * 1024 * 1024, timeout: 120_000 };
    const printed = await promisify(execFile)(TSC, ['-p', dir, '--pretty', 'false'], limits).then(
      () => '',
      (err: { stdout?: string; code?: unknown }) => {
        if (err.stdout === undefined || typeof err.code !== 'number') throw err;
        return err.stdout;
      },
    );
    const errors = printed.matchAll(/^(?:.*\/)?(\d+)\.ts\(\d+,\d+\): error (.*)$/gm);
    return [...errors].map(([, index, error]) => `${nameOf(distinct[Number(index)]?.[1])}: ${error}`);
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}
