import { describe, expect, it } from 'vitest';
import { canRender } from './kubernetes/mutants.ts';
import { containersOf, ofKind } from './kubernetes/objects.ts';
import { podProblems } from './kubernetes/pods.ts';
import { findRenderers, renderCopy } from './kubernetes/render.ts';
import { withSecrets } from './kubernetes/settings.ts';

const renderers = await findRenderers();

const DIGEST = `sha256:${'ab'.repeat(32)}`;

/** What the API server takes as the name of a Job whose pods bear it as a label. */
const JOB_NAME = /^(?=.{1,63}$)[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/;

/** What may be the value of a label. */
const LABEL = /^[A-Za-z0-9]([-\w.]{0,61}[A-Za-z0-9])?$/;

describe.skipIf(!canRender)('an image for Kubernetes', { timeout: 60_000 }, () => {
  it.each(renderers)('may be pinned by a digest beside its tag, which alone names the migrations ($name)', async (renderer) => {
    const pinned = await renderCopy(renderer, (text) =>
      text.replace(/^( +)newTag: .*$/m, `$1newTag: 2.0.0-rc.1\n$1digest: ${DIGEST}`),
    );
    const jobs = ofKind(pinned, 'Job');
    const names = jobs.map(({ metadata }) => metadata.name);
    expect(names.sort()).toEqual(['apps', 'files', 'identity'].map((name) => `migrate-${name}-2.0.0-rc.1`));
    for (const { metadata } of jobs) {
      expect(metadata.name).toMatch(JOB_NAME);
      for (const value of Object.values(metadata.labels)) expect(value).toMatch(LABEL);
    }
    for (const object of [...jobs, ...ofKind(pinned, 'Deployment')]) {
      expect(containersOf(object)[0].image).toBe(`registry.example.com/latchkey:2.0.0-rc.1@${DIGEST}`);
    }
    expect(await podProblems(withSecrets(pinned))).toEqual([]);
  });

  it.each(renderers)('is not rendered with a digest alone, which would name the migrations ($name)', async (renderer) => {
    const pinned = renderCopy(renderer, (text) => text.replace(/^( +)newTag: .*$/m, `$1digest: ${DIGEST}`));
    await expect(pinned).rejects.toThrow(/index 1 is out of bounds for value registry\.example\.com\/latchkey\b/);
  });
});
