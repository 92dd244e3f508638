import { z } from 'zod';

/** A JSON schema, as OpenAPI 3.1 has it. */
export type JsonSchema = Record<string, unknown>;

/** Converts Zod schemas to JSON schemas. A schema with an `id` becomes a component, and every use of it a reference. */
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
    for (const [id, component] of Object.entries($defs)) this.#addComponent(id, component);
    return properties.schema;
  }

  #addComponent(id: string, component: JsonSchema): void {
    const known = this.components[id];
    if (known && JSON.stringify(known) !== JSON.stringify(component)) throw new Error(`Two schemas have the id ${id}`);
    this.components[id] = component;
  }
}

function override({ zodSchema, jsonSchema }: { zodSchema: z.core.$ZodType; jsonSchema: JsonSchema }): void {
  // Zod drops the examples of transformed values, since they may be input or output. Ours are always input.
  const { examples } = z.globalRegistry.get(zodSchema) ?? {};
  if (examples) jsonSchema.examples = examples;
  if (jsonSchema.type !== 'integer') return;
  // A number in a query is text to Zod.
  delete jsonSchema.pattern;
  if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
}
