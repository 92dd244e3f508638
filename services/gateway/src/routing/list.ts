import { z } from 'zod';

/**
 * Invalid elements after which the rest of a list is not checked, so that a body makes about
 * as many issues as an error has details, however long its lists are.
 */
const INVALID_ELEMENTS_MAX = 3;

interface ListDef extends z.core.$ZodArrayDef {
  readonly min: number;
  readonly max: number;
}

/** Zod's own array checks its length after all its elements, and also that of texts and objects. */
const BoundedArray = z.core.$constructor<z.ZodArray, ListDef>('BoundedArray', (inst, def) => {
  z.ZodArray.init(inst, def);
  const { element, min, max } = def;
  inst._zod.parse = (payload, ctx) => {
    const { value: input, issues } = payload;
    if (!Array.isArray(input)) issues.push({ code: 'invalid_type', expected: 'array', input, inst });
    else if (input.length < min) issues.push({ code: 'too_small', origin: 'array', minimum: min, input, inst });
    else if (input.length > max) issues.push({ code: 'too_big', origin: 'array', maximum: max, input, inst });
    else {
      const values: unknown[] = [];
      for (let index = 0; index < input.length && issues.length < INVALID_ELEMENTS_MAX; index += 1) {
        const result = element._zod.run({ value: input[index], issues: [] }, ctx) as z.core.ParsePayload;
        issues.push(...z.core.util.prefixIssues(index, result.issues));
        values.push(result.value);
      }
      payload.value = values;
    }
    return payload;
  };
});

/** A list whose length is checked before its elements, and its elements up to the third issue. */
export function list<T extends z.ZodType>(element: T, min: number, max: number): z.ZodArray<T> {
  const schema = new BoundedArray({ type: 'array', element, min, max }) as z.ZodArray<T>;
  return schema.meta({ ...(min > 0 && { minItems: min }), maxItems: max });
}
