import { readdirSync, readFileSync } from 'node:fs';
import { parseAllDocuments } from 'yaml';
import { ROOT } from './compose-file.ts';

const BASE = `${ROOT}deploy/kubernetes/base/`;

/** The memory that a process has on Kubernetes, as `512Mi`, by the name of its Deployment or Job there; undefined where there is none. */
export function memoryLimitOf(name: string): string | undefined {
  const objects = readdirSync(BASE)
    .filter((file) => file.endsWith('.yaml'))
    .flatMap((file) => parseAllDocuments(readFileSync(BASE + file, 'utf8')).map((document) => document.toJS()));
  const workload = objects.find(
    ({ kind, metadata }) => ['Deployment', 'Job'].includes(kind) && [name, `${name}-release`].includes(metadata.name),
  );
  return workload?.spec.template.spec.containers[0].resources.limits.memory;
}
