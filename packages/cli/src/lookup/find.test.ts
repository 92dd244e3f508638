import { expect, it } from 'vitest';
import { findByNameOrId } from './find.ts';

const ENGINE = { id: '01a206dc-3973-773f-ae45-597b967a1744', name: 'Difference Engine' };
const TWIN = { id: '01a206dc-3973-773f-ae45-597b967a1745', name: 'Twin engine' };
const OTHER = { id: '01a206dc-3973-773f-ae45-597b967a1746', name: 'Twin engine' };
const find = (wanted: string) => findByNameOrId([ENGINE, TWIN, OTHER], wanted, 'application', 'latchkey apps list');

it('finds by name and by id', () => {
  expect([find('Difference Engine'), find(OTHER.id.toUpperCase())]).toEqual([ENGINE, OTHER]);
});

it('finds a name in another form than the server stores it in, as it was created with', () => {
  const editor = { id: OTHER.id, name: '\u00c9diteur' };
  for (const wanted of ['E\u0301diteur', ' \u00c9diteur ', '\u00c9di\u200bteur'])
    expect(findByNameOrId([editor], wanted, 'application', 'latchkey apps list')).toBe(editor);
});

it.each([
  ['Difference Engin', 'notFound', 'No application is called "Difference Engin". Did you mean "Difference Engine"?'],
  ['Loom', 'notFound', 'No application is called "Loom". Run "latchkey apps list" to see them all.'],
  ['Twin engine', 'usage', `2 applications are called "Twin engine". Use an id: ${TWIN.id}, ${OTHER.id}.`],
])('says what to do about %s', (wanted, outcome, message) => {
  expect(() => find(wanted)).toThrow(expect.objectContaining({ outcome, message }));
});
