import { refusalOf } from '@latchkey/testkit/refusal';
import { describe, expect, it } from 'vitest';
import { ASTRAL, type OwnedRef, SPACES, UNSTORABLE, useTestApps } from '../testing/test-apps.ts';

const apps = useTestApps();

const replace = (ref: OwnedRef, levels: string[]) => apps.client.replaceLicenseLevels({ ...ref, levels });
const levelsOf = async (ref: OwnedRef) => (await apps.client.listLicenseLevels(ref)).levels;

describe('license levels', () => {
  it.each([
    ['in any order and length', ['z', 'a', 'M', 'm', 'x'.repeat(16), ASTRAL.repeat(16), 'two words', 'é', 'e\u0301']],
    ['as many as an application may have', Array.from({ length: 1_000 }, (_, index) => `level ${index}`)],
    ['that look like SQL', ['NULL', 'null', '{}', '{a,b}', ',', '"', '\\', '\\"', "'", '\\x00', '$1', '%', 'tab\there']],
  ])('are stored trimmed and in the given order: %s', async (_, levels) => {
    const [ref, other] = await Promise.all([apps.createOwned(), apps.createOwned()]);
    await replace(other, ['other']);
    await replace(ref, ['replaced']);
    await replace(
      ref,
      levels.map((level) => SPACES + level + SPACES),
    );
    expect(await levelsOf(ref)).toEqual(levels);
    expect(await levelsOf(other)).toEqual(['other']);
  });

  it.each<[string, string[]]>([
    ['no level', []],
    ['1,001 levels', Array.from({ length: 1_001 }, (_, index) => `level ${index}`)],
    ['a level of white space', ['gold', SPACES]],
    ['17 characters', ['x'.repeat(17)]],
    ['17 astral characters', [ASTRAL.repeat(17)]],
    ['one level twice after trimming', ['gold', ' gold\n']],
    ...UNSTORABLE.map((text): [string, string[]] => [JSON.stringify(text), ['gold', text.slice(0, 16)]]),
  ])('reject %s and do not change', async (_, levels) => {
    const ref = await apps.createOwned();
    await replace(ref, ['silver', 'bronze']);
    const invalid = { reason: 'license_levels_invalid', kind: 'malformed', code: 'VALIDATION_ERROR' };
    expect(await refusalOf(replace(ref, levels))).toMatchObject(invalid);
    expect(await levelsOf(ref)).toEqual(['silver', 'bronze']);
  });
});
