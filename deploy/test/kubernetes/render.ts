import { execFile, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { findGoProgram } from '@latchkey/testkit/process/go-program';
import { parseAllDocuments } from 'yaml';
import type { KubeObject } from './objects.ts';

export const HELM_DIR = join(import.meta.dirname, '..', '..', 'helm');
const EXAMPLE = join(HELM_DIR, 'example', 'values.yaml');

/** Helm 4 of this machine, or the one that `npm run test:all` builds. */
const helm = spawnSync('helm', ['version', '--short'], { encoding: 'utf8' }).stdout?.startsWith('v4.')
  ? 'helm'
  : await findGoProgram({ name: 'helm.sh/helm/v4', version: 'v4.2.4' }, 'cmd/helm');

/** Reason why the chart can't be rendered, for the names of skipped tests. */
export const missingHelm = typeof helm === 'string' ? undefined : `Helm 4 is not installed; ${helm.unavailable}`;

/** Renders the chart with the example's values and these. Throws Helm's error. */
export async function render(values: object = {}, files = [EXAMPLE]): Promise<KubeObject[]> {
  if (typeof helm !== 'string') return [];
  const args = ['template', 'latchkey', join(HELM_DIR, 'latchkey'), '--namespace', 'latchkey'];
  const sources = [...files, '-'].flatMap((file) => ['--values', file]);
  const rendering = promisify(execFile)(helm, [...args, ...sources], { maxBuffer: 16 * 1024 * 1024, timeout: 60_000 });
  rendering.child.stdin?.end(JSON.stringify(values));
  return parseAllDocuments((await rendering).stdout).flatMap((document) => document.toJS() ?? []);
}
