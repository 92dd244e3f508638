import { countingList } from '@latchkey/testkit/values/counting-list';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { createRoutes } from '../routes/all-routes.ts';
import type { RouteContext } from '../routing/route.ts';
import { compileValidator } from './validation.ts';

interface JsonSchema {
  readonly type?: string;
  readonly maxItems?: number;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly oneOf?: readonly JsonSchema[];
  readonly anyOf?: readonly JsonSchema[];
}

/** An input of a route, and the details of a request that sets it alone. */
interface Input {
  readonly name: string;
  readonly path: string;
  readonly schema: JsonSchema;
  validate(value: unknown): ReadonlyArray<{ readonly path: string; readonly message: string }>;
}

const ITEMS = 32_000;
const TEXT_BYTES = 64 * 1024;
const PARTS = { body: 'body', query: 'querystring', params: 'params', headers: 'headers' } as const;

const routes = createRoutes({ clients: {}, limits: {}, publicUrl: 'http://localhost' } as RouteContext);
const inputs = routes.flatMap((route) =>
  (['body', 'query', 'params', 'headers'] as const).flatMap((part) => {
    const schema = route[part];
    if (!schema) return [];
    const validator = compileValidator({ schema, httpPart: PARTS[part], method: route.method, url: route.url });
    return findInputs(z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }) as JsonSchema).map(
      ([property, each]): Input => ({
        name: `${route.method} ${route.url} ${part}.${property}`,
        path: `${part === 'headers' ? 'header' : part}.${property}`,
        schema: each,
        validate: (value) => {
          const { error } = validator({ action: 'change_file_name', [property]: value }) as {
            error?: { details: ReturnType<Input['validate']> };
          };
          return error?.details ?? [];
        },
      }),
    );
  }),
);

function findInputs({ properties = {}, oneOf = [], anyOf = [] }: JsonSchema): Array<[string, JsonSchema]> {
  return [...Object.entries(properties), ...[...oneOf, ...anyOf].flatMap(findInputs)];
}

const isList = ({ schema }: Input) => [schema, ...(schema.anyOf ?? [])].some(({ type }) => type === 'array');
const lists = inputs.filter(isList);

describe('a list', () => {
  it('has a limit in every schema', () => {
    const limits: unknown[] = [];
    JSON.stringify(inputs, (_, value) => {
      if (value?.type === 'array') limits.push(value.maxItems);
      return value;
    });
    expect(limits.length).toBeGreaterThan(0);
    for (const limit of limits) expect(limit).toBeLessThanOrEqual(1_000);
  });

  it.each(lists)('$name beyond its limit is rejected before an element is read', ({ path, validate, schema }) => {
    for (const length of [ITEMS, (schema.maxItems ?? 0) + 1]) {
      const { list, counts } = countingList(length, 1);
      const message = `must be at most ${schema.maxItems?.toLocaleString('en')} entries`;
      expect(validate(list).filter((detail) => detail.path.startsWith(path))).toEqual([{ path, message }]);
      expect(counts.reads).toBe(0);
    }
  });

  it.each(lists)('$name is read up to its third invalid element', ({ validate, schema }) => {
    const { list, counts } = countingList(schema.maxItems ?? ITEMS, 1);
    expect(validate(list).length).toBeLessThanOrEqual(10);
    expect(counts.reads).toBe(Math.min(schema.maxItems ?? ITEMS, 3));
  });
});

const bodies = routes.flatMap(({ method, url, body }) => (body ? [{ name: `${method} ${url}`, body }] : []));

it.each(bodies)('the worst body of $name makes at most 10 issues, or 3 for a list and one for another property', ({ body }) => {
  const properties = findInputs(z.toJSONSchema(body, { io: 'input', unrepresentable: 'any' }) as JsonSchema);
  for (const wrong of [1, {}, '', 'a'.repeat(TEXT_BYTES)]) {
    const worst = properties.map(([name, { type, maxItems }]) => [name, type === 'array' ? Array(maxItems).fill(1) : wrong]);
    const value = { ...Object.fromEntries(worst), action: 'change_file_name', unknown: 1 };
    const perProperty = properties.reduce((sum, [, { type }]) => sum + (type === 'array' ? 3 : 1), 1);
    expect(body.safeParse(value).error?.issues.length).toBeLessThanOrEqual(Math.max(10, perProperty));
  }
});

const LONG_TEXTS = ['a', ' ', '\x7f', '\0', '\u0315\u0316', '😀', 'a.', '-', '9', '"'].map((part) =>
  part.repeat(TEXT_BYTES / Buffer.byteLength(part)),
);
/** Of a wrong type for every input but maps. */
const OBJECTS = [{ length: 1e9 }, { length: 0 }, { length: { toString: 1 } }, { length: [] }, {}];
const OTHERS = [0, -1, 1.5, 1e308, null, true, [], Array(ITEMS).fill(''), Array(ITEMS).fill(1)];

describe('the details of a request', () => {
  it.each(inputs)('have one rule for $name, whatever its value', ({ path, validate, schema }) => {
    for (const value of [...LONG_TEXTS, ...OTHERS])
      expect(validate(value).filter((detail) => detail.path === path).length).toBeLessThanOrEqual(1);
    for (const value of schema.type === 'object' ? [] : OBJECTS) {
      const [rule, ...more] = validate(value).filter((detail) => detail.path === path);
      expect([rule?.message, more]).toEqual([expect.stringMatching(/^must (?!.*(?:entries|empty))/), []]);
    }
  });

  const parameters = inputs.filter(({ path }) => path.startsWith('query.'));

  it.each(parameters)('say that $name was given twice, whatever its values', ({ path, validate }) => {
    for (const twice of [
      ['1', '1'],
      ['name', 'name'],
      ['', ''],
    ])
      expect(validate(twice).filter((detail) => detail.path === path)).toEqual([{ path, message: 'must be given once' }]);
  });
});
