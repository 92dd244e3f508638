import { z } from 'zod';

const id = z.uuid().meta({ description: 'Another for each event, and the same however often it is delivered.' });
const source = z
  .string()
  .regex(/^\/applications\/[0-9a-f-]{36}$/)
  .meta({ description: 'The application, as `/applications/<id>`.' });
const time = z.iso.datetime({ precision: 3 }).meta({ description: 'When it happened, in UTC.' });
const sequence = z
  .string()
  .regex(/^[1-9]\d*$/)
  .meta({ description: 'Place among the events of the application, in decimal: 1, and one more for each.' });
const version = z.string().min(1).max(64);

/** A CloudEvents 1.0 frame without a `sequence`. */
const frame = <Type extends string, Data extends z.ZodType>(type: Type, data: Data) =>
  z.object({
    specversion: z.literal('1.0'),
    id,
    source,
    type: z.literal(type),
    time,
    datacontenttype: z.literal('application/json'),
    data,
  });

/** A frame about the application, which has its place among the others. */
const sequenced = <Type extends string, Data extends z.ZodType>(type: Type, data: Data) => frame(type, data).extend({ sequence });

/** `latchkey.connection.ready`: how the application stands; the first frame on each connection. */
export const readyFrame = frame(
  'latchkey.connection.ready',
  z.object({
    applicationId: z.uuid(),
    name: z.string().min(1),
    status: z.enum(['online', 'paused']),
    version,
    lastSequence: z
      .string()
      .regex(/^(0|[1-9]\d*)$/)
      .meta({ description: '`sequence` of the newest event that this snapshot contains. `0`: there was none yet.' }),
    resumed: z.boolean().meta({
      description:
        'True: every event after the one that the client named follows. False: it named none, or not all of them are held any more; the snapshot stands in for what came before.',
    }),
  }),
);

/**
 * The frames that are sequenced, each by the name that its event has in the protocol (`latchkey.apps.v1.ApplicationEvent`). What clients are
 * sent fits these; they may not rely on there being no further properties.
 */
export const applicationFrames = {
  paused: sequenced('latchkey.application.paused', z.object({ status: z.literal('paused') })),
  resumed: sequenced('latchkey.application.resumed', z.object({ status: z.literal('online') })),
  versionChanged: sequenced('latchkey.application.version_changed', z.object({ version, previousVersion: version })),
  deleted: sequenced('latchkey.application.deleted', z.object({})),
};

export type ReadyFrame = z.infer<typeof readyFrame>;
export type ApplicationFrames = { [Name in keyof typeof applicationFrames]: z.infer<(typeof applicationFrames)[Name]> };
export type ApplicationFrame = ApplicationFrames[keyof ApplicationFrames];
