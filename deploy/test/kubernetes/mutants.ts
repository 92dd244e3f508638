import { expect, it } from 'vitest';
import { containersOf, find, type KubeObject } from './objects.ts';
import { findRenderers, renderExample } from './render.ts';
import { withSecrets } from './settings.ts';

const [renderer] = await findRenderers();

/** Whether there is anything to change. */
export const canRender = renderer !== undefined;

/** The example's objects, for a mutant to change; of each kind and name, or the only container of a Deployment. */
export interface Manifests {
  readonly objects: KubeObject[];
  get(kind: string, name: string): KubeObject;
  container(name: string): KubeObject;
}

const rendered = renderer ? renderExample(renderer).then(withSecrets) : Promise.resolve([]);
rendered.catch(() => undefined);

/** A copy of the rendered example. */
export async function mutable(): Promise<Manifests> {
  const objects = structuredClone(await rendered);
  const get = (kind: string, name: string) => find(objects, kind, name) ?? expect.fail(`there is no ${kind} ${name}`);
  return { objects, get, container: (name) => containersOf(get('Deployment', name))[0] };
}

/** What is changed, how, and what the check is to find in it. */
export type Mutant = readonly [string, (manifests: Manifests) => unknown, string | RegExp];

/** Tests that a check finds what each change breaks. */
export function eachMutant(check: (objects: readonly KubeObject[]) => string[], mutants: readonly Mutant[]): void {
  it.each(mutants)('finds %s', async (_, mutate, finding) => {
    const manifests = await mutable();
    mutate(manifests);
    const expected = typeof finding === 'string' ? finding : expect.stringMatching(finding);
    expect(check(manifests.objects)).toContainEqual(expected);
  });
}

/** A variable of a Deployment's container. */
export function variable({ container }: Manifests, deployment: string, name: string): KubeObject {
  return container(deployment).env.find((each: KubeObject) => each.name === name);
}

/** Data of the ConfigMap or Secret whose name begins so. */
export function data({ objects }: Manifests, name: string): Record<string, string> {
  return objects.find((object) => object.data && object.metadata.name.startsWith(name))?.data;
}
