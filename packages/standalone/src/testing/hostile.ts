import type { SeededRandom } from './random.ts';

const WORDS =
  'a paused online version status socketKey delete_file change_file_name applications:read true null 0 -1 1e400 __proto__ constructor';

/** Texts that are unlikely to be handled. */
const TEXTS = [
  ...[
    '',
    ' ',
    ...WORDS.split(' '),
    '{"searchString":"%_\\\\","categories":["Name"]}',
    '[[[[[[[[[[]]]]]]]]]]',
    "' OR 1=1; DROP TABLE account; --",
  ],
  ...['\0', 'a\0b', '\ud800', '\udfff\ud800', '\ufeff', '\u202e', '😀'.repeat(17), 'e\u0301'.repeat(20), '\r\nX-Injected: 1'],
  ...['{{7*7}}<%= 7*7 %>', '../../../../etc/passwd', '%00%ff%zz', '2999-01-01T00:00:00Z', '+275760-09-13T00:00:00.001Z'],
  ...['00000000-0000-0000-0000-000000000000', '01900000-0000-7000-8000-00000000dead', 'a'.repeat(33), 'a'.repeat(1_025)],
];
const NAMES =
  'name levels field value type applicationId code scopes allApplications applicationIds expiresAt action fileId fileName'.split(
    ' ',
  );
const OTHER_NAMES = ['username', 'email', 'password', '__proto__', 'constructor', 'toString', '', '\0', 'length'];
const NUMBERS = [0, -0, 1, -1, 0.1, 2 ** 31, 2 ** 53, -(2 ** 63), 1e308, Number.MIN_VALUE];
const HEADER_VALUES = [...' a , ; " = \xff\xfe * -1 0 __proto__ %00 {} null é'.split(' '), ' ', '\t', 'a'.repeat(2_000)];

/** Any JSON value, more often an unexpected one. */
function hostileValue(random: SeededRandom, depth = 3): unknown {
  switch (random.below(depth > 0 ? 9 : 6)) {
    case 0:
      return null;
    case 1:
      return random.oneIn(2);
    case 2:
      return random.pick(NUMBERS);
    case 6:
      return Array.from({ length: random.below(4) }, () => hostileValue(random, depth - 1));
    case 7:
      return hostileObject(random, depth - 1);
    default:
      return hostileText(random);
  }
}

export function hostileText(random: SeededRandom): string {
  return random.oneIn(4) ? random.pick(TEXTS) + random.pick(TEXTS) : random.pick(TEXTS);
}

function hostileObject(random: SeededRandom, depth = 2): Record<string, unknown> {
  const name = () => random.pick(random.oneIn(4) ? OTHER_NAMES : NAMES);
  return Object.fromEntries(Array.from({ length: random.below(5) }, () => [name(), hostileValue(random, depth)]));
}

/** A valid body with something changed, left out or added, or one of another kind. */
export function hostileBody(random: SeededRandom, valid: object | undefined): string {
  if (!valid || random.oneIn(8)) return JSON.stringify(random.oneIn(2) ? hostileObject(random) : hostileValue(random)) ?? '';
  const body = { ...valid } as Record<string, unknown>;
  const name = random.pick(Object.keys(body));
  const choice = random.below(8);
  if (choice === 0) delete body[name];
  else if (choice === 1) body[hostileText(random)] = hostileValue(random);
  else body[name] = hostileValue(random);
  return damage(random, JSON.stringify(body));
}

/** Now and then a text with a byte lost, doubled or exchanged. */
function damage(random: SeededRandom, text: string): string {
  if (!random.oneIn(5)) return text;
  const at = random.below(text.length + 1);
  const junk = random.pick(['', '"', '{', '}', '[', ',', ':', '\\', '\\u', '\\ud800', '\0', '\u2028', text.slice(at, at + 20)]);
  return text.slice(0, at) + junk + text.slice(at + random.below(2));
}

/** A value for a header, of bytes that HTTP allows. */
export const hostileHeader = (random: SeededRandom): string => random.pick(HEADER_VALUES);
