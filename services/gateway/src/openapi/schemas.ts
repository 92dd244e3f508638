import { z } from 'zod';

export type JsonSchema = Record<string, unknown>;

/** Converts Zod schemas to JSON schemas. One with an `id` becomes a component. */
export class SchemaCollection {
  readonly components: Record<string, JsonSchema> = {};

  /**
   * @param io `input` for what clients send, `output` for what they get
   * @throws when two different schemas have the same `id`
   */
  add(schema: z.ZodType, io: 'input' | 'output'): JsonSchema {
    // Zod makes references only of the parts of a schema, never of the whole.
    const json = z.toJSONSchema(z.object({ schema }), { io, unrepresentable: 'any', override });
    const text = JSON.stringify(json).replaceAll('"#/$defs/', '"#/components/schemas/');
    const { properties, $defs = {} } = JSON.parse(text) as {
      properties: { schema: JsonSchema };
      $defs?: Record<string, JsonSchema>;
    };
    for (const [id, component] of Object.entries($defs)) {
      const known = this.components[id];
      if (known && JSON.stringify(known) !== JSON.stringify(component)) throw new Error(`Two schemas have the id ${id}`);
      this.components[id] = component;
    }
    return properties.schema;
  }
}

function override({ zodSchema, jsonSchema }: { zodSchema: z.core.$ZodType; jsonSchema: JsonSchema }): void {
  // Zod drops the examples of transformed values. Ours are always inputs.
  const { examples } = z.globalRegistry.get(zodSchema) ?? {};
  if (examples) jsonSchema.examples = examples;
  if (jsonSchema.type !== 'integer') return;
  // A number in a query is text to Zod.
  delete jsonSchema.pattern;
  if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
}
