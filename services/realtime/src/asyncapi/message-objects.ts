import { z } from 'zod';
import { EXAMPLES } from './examples.ts';
import { applicationFrames, readyFrame } from './messages.ts';

const FRAMES = { ready: readyFrame, ...applicationFrames };

const SUMMARIES: Record<keyof typeof FRAMES, string> = {
  ready: 'How the application stands. The first frame on each connection; it has no `sequence`.',
  paused: 'The application was paused.',
  resumed: 'The application is online again.',
  versionChanged: 'The application has another version.',
  deleted: 'The application was deleted. The connection is closed with 4102 after it.',
};

/** The message objects of the document, by the names that their events have in the protocol. */
export function describeMessages() {
  return Object.fromEntries(
    (Object.keys(FRAMES) as Array<keyof typeof FRAMES>).map((name) => [name, describeMessage(name)] as const),
  );
}

function describeMessage(name: keyof typeof FRAMES) {
  const type = FRAMES[name].shape.type.value;
  return {
    name: type,
    title: type,
    summary: SUMMARIES[name],
    payload: schemaOf(FRAMES[name]),
    examples: [{ name, payload: EXAMPLES[name] }],
  };
}

/** The JSON Schema of a frame as clients should read it: with room for properties that come later. */
function schemaOf(frame: z.ZodType) {
  const { $schema: _, ...schema } = z.toJSONSchema(frame, {
    target: 'draft-7',
    io: 'input',
    // A format says the same in a word.
    override: ({ jsonSchema }) => {
      if (jsonSchema.format !== undefined) delete jsonSchema.pattern;
    },
  });
  return schema;
}
