import { refusalOf } from '@latchkey/testkit/refusal';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { whileFailing } from '../testing/failing-table.ts';
import { eventsOf, everything } from '../testing/rows.ts';
import { type OwnedRef, startTestApps, type TestApps } from '../testing/test-apps.ts';
import { ASTRAL, SPACES, UNSTORABLE } from '../testing/texts.ts';

let apps: TestApps;
beforeAll(async () => {
  apps = await startTestApps();
});
afterAll(() => apps.stop());

const INVALID = { reason: 'license_levels_invalid', kind: 'malformed', code: 'VALIDATION_ERROR', metadata: {} };

const replace = (ref: OwnedRef, levels: string[]) => apps.client.replaceLicenseLevels({ ...ref, levels });
const levelsOf = async (ref: OwnedRef) => (await apps.client.listLicenseLevels(ref)).levels;

describe('license levels', () => {
  it('are kept in the order given, exactly as given but trimmed', async () => {
    const ref = await apps.createOwned();
    const levels = ['z', 'a', 'M', 'm', 'x'.repeat(16), ASTRAL, ASTRAL.repeat(16), 'two words', 'é', 'e\u0301'];
    await replace(
      ref,
      levels.map((level) => SPACES + level + SPACES),
    );
    expect(await levelsOf(ref)).toEqual(levels);
  });

  it('may be any text, also what an array or SQL literal is written with', async () => {
    const ref = await apps.createOwned();
    const levels = ['NULL', 'null', '{}', '{a,b}', ',', '"', '\\', '\\"', "'", '\\x00', 'a"b\\c', '$1', '%', 'tab\there', 'a\nb'];
    await replace(ref, levels);
    expect(await levelsOf(ref)).toEqual(levels);
  });

  it('are replaced as a whole, and only those of the application', async () => {
    const [ref, other] = await Promise.all([apps.createOwned(), apps.createOwned()]);
    await replace(other, ['other']);
    await replace(ref, ['gold', 'silver']);
    await replace(ref, ['bronze', 'gold']);
    expect(await levelsOf(ref)).toEqual(['bronze', 'gold']);
    expect(await levelsOf(other)).toEqual(['other']);
  });

  it('are one of the sets given where several are given at once, and never a mixture', async () => {
    const ref = await apps.createOwned();
    const sets = Array.from({ length: 12 }, (_, i) => [`${i} a`, `${i} b`, `${i} c`]);
    await Promise.all(sets.map((levels) => replace(ref, levels)));
    expect(sets).toContainEqual(await levelsOf(ref));
  });

  it('are of no interest to live clients', async () => {
    const ref = await apps.createOwned();
    await replace(ref, ['gold']);
    expect(await eventsOf(apps.db, ref.applicationId)).toEqual([]);
  });

  it.each<[string, string[]]>([
    ['no level', []],
    ['an empty level', ['gold', '']],
    ['a level of white space', ['gold', SPACES]],
    ['17 characters', ['x'.repeat(17)]],
    ['17 astral characters', [ASTRAL.repeat(17)]],
    ['17 code points in which astral ones are', [`${ASTRAL.repeat(8)}${'x'.repeat(9)}`]],
    ['a very long level', ['x'.repeat(1_000_000)]],
    ['one level twice', ['gold', 'silver', 'gold']],
    ['one level twice after trimming', ['gold', ' gold\n']],
    ...UNSTORABLE.map((text): [string, string[]] => [JSON.stringify(text), ['gold', text.slice(0, 16)]]),
  ])('can’t have %s, and stay as they were', async (_, levels) => {
    const ref = await apps.createOwned();
    await replace(ref, ['silver', 'bronze']);
    const before = await everything(apps.db);
    expect(await refusalOf(replace(ref, levels))).toMatchObject(INVALID);
    expect(await everything(apps.db)).toEqual(before);
  });

  it('stay as they were when they can’t be written', async () => {
    const ref = await apps.createOwned();
    await replace(ref, ['silver']);
    const failure = { table: 'application', operation: 'update', applicationId: ref.applicationId } as const;
    const refusal = await whileFailing(apps.db, failure, () => refusalOf(replace(ref, ['gold'])));
    expect(refusal).toMatchObject({ connectCode: 'Internal', message: 'internal error', detailCount: 0 });
    expect(await levelsOf(ref)).toEqual(['silver']);
  });
});
