import { type JsonObject, toJson } from '@bufbuild/protobuf';
import { timestampDate } from '@bufbuild/protobuf/wkt';
import { EVENT_WAIT_SECONDS_MAX, LIVE_EVENT_TYPE_PREFIX, toCloudEvent } from '@latchkey/contract/cloud-event';
import { EVENTS_PULLED_MAX } from '@latchkey/contract/page-size';
import { ConcurrencyLimit } from '@latchkey/kit/http/concurrency-limit';
import { LIVE_CLIENTS } from '@latchkey/kit/redis/account-changes';
import type { LoggedEvent, PullApplicationEventsResponse } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { ApplicationEventSchema } from '@latchkey/proto/latchkey/apps/v1/event_pb';
import { z } from 'zod';
import { type GivenCredential, readCredential, readUserAgent } from '../authentication/credential.ts';
import { errors } from '../errors.ts';
import { concurrencyReached, type Limit } from '../rate-limit/rate-limits.ts';
import { resolveApplication } from '../routing/resolve-application.ts';
import { defineRoute, type RouteContext } from '../routing/route.ts';
import { applicationId, EXAMPLE_IDS, queryNumber, timestamp } from '../routing/schemas.ts';

const WAITING: Limit = { name: 'waiting-event-requests', max: 16, windowMs: 1_000 };

const POSITION = /^([\x21-\x39\x3b-\x7e]{1,64}):(0|[1-9][0-9]{0,14})$/;

const event = z
  .looseObject({
    specversion: z.literal('1.0'),
    id: z.string().meta({ format: 'uuid' }),
    source: z.string().meta({ examples: [`/applications/${EXAMPLE_IDS.application}`] }),
    type: z.string().meta({ examples: ['latchkey.application.version_changed'] }),
    time: timestamp,
    datacontenttype: z.literal('application/json'),
    epoch: z.string(),
    sequence: z.string().meta({ examples: ['7'] }),
    data: z.record(z.string(), z.string()).meta({ examples: [{ version: '1.1', previousVersion: '1.0' }] }),
  })
  .meta({ id: 'Event', description: 'A CloudEvent, as live clients receive it.' });

const SCOPE = 'applications:read';

export function eventRoutes({ clients, changes, authenticator }: RouteContext) {
  const waiting = new ConcurrencyLimit(WAITING.max);
  return {
    listEvents: defineRoute('GET /api/v1/panel/events', SCOPE, {
      application: 'query',
      summary: 'Pull live events of an application',
      description: [
        `The retained events after a position, oldest first, up to ${EVENTS_PULLED_MAX}. With \`waitSeconds\` and without an event, the request waits for the first one. Pass \`next\` on as \`after\` of the next request.`,
        '`gap` is true if events after the position are no longer retained, or if the event log was set back (another epoch): read the settings of the application then. After the deletion of the application the answer is 404.',
        `${WAITING.max} requests of an account may wait at each gateway; others are answered 429.`,
      ].join('\n\n'),
      query: z.object({
        applicationId,
        after: z
          .string()
          .regex(POSITION, 'must be <epoch>:<sequence>')
          .optional()
          .meta({
            description: '`next` of the response before. Without it, the events begin with the oldest.',
            examples: ['b1946ac92492d234:7'],
          }),
        waitSeconds: queryNumber(0, EVENT_WAIT_SECONDS_MAX, 0, 'Longest wait for an event.', 20),
      }),
      data: z.object({
        events: z.array(event),
        next: z.string().meta({ description: 'Position after these events.', examples: ['b1946ac92492d234:8'] }),
        gap: z.boolean(),
      }),
      message: 'Successfully fetched events',
      failures: ['pullApplicationEvents'],
      handle: async ({ application, query: { after, waitSeconds }, raw, clientIp, reply }) => {
        const { accountId, applicationId } = application;
        const [, epoch = '', sequence = '0'] = POSITION.exec(after ?? '') ?? [];
        const position = after === undefined ? {} : { after: { epoch, sequence: BigInt(sequence) } };
        const page = { ...application, ...position, pageSize: EVENTS_PULLED_MAX };
        const pull = () => clients.applications.pullApplicationEvents(page);
        /** Throws where the credential lost its rights while the request waited. */
        const verify = async () => {
          const credential = readCredential(raw) as GivenCredential;
          const principal = await authenticator.authenticate(credential, clientIp, readUserAgent(raw));
          if (principal.kind === 'key' && !principal.scopes.has(SCOPE)) throw errors.scope_missing();
          await resolveApplication(clients, principal, applicationId);
        };
        if (waitSeconds === 0) return toPage(applicationId, await pull());
        const release = waiting.acquire(accountId);
        if (!release) throw concurrencyReached(WAITING);
        // Resolves at a change; the first read is due anyway.
        let changed = Promise.withResolvers<void>();
        let isOver = false;
        const end = () => {
          isOver = true;
          changed.resolve();
        };
        const timer = setTimeout(end, waitSeconds * 1_000);
        reply.raw.once('close', end);
        let unlisten = () => {};
        try {
          unlisten = await changes.listen(accountId, (change) => {
            if (!change) end();
            else if (change.kind !== LIVE_CLIENTS && (change.applicationId ?? applicationId) === applicationId) changed.resolve();
          });
          for (;;) {
            const found = await pull();
            if (found.events.length > 0 || found.gap || isOver) return toPage(applicationId, found);
            await changed.promise;
            if (!isOver) changed = Promise.withResolvers();
            await verify();
          }
        } finally {
          clearTimeout(timer);
          unlisten();
          release();
        }
      },
    }),
  };
}

function toPage(applicationId: string, { events, next, gap }: PullApplicationEventsResponse) {
  const epoch = next?.epoch ?? '';
  return { events: events.flatMap((logged) => toEvent(applicationId, epoch, logged)), next: `${epoch}:${next?.sequence}`, gap };
}

/** None for an event type of a later release. */
function toEvent(applicationId: string, epoch: string, { id, sequence, createdAt, event }: LoggedEvent) {
  const name = event?.event.case;
  if (!event || !createdAt || name === undefined) return [];
  const type = LIVE_EVENT_TYPE_PREFIX + ApplicationEventSchema.field[name].name;
  const { [name]: data = {} } = toJson(ApplicationEventSchema, event) as Record<string, JsonObject>;
  const facts = { id, type, time: timestampDate(createdAt).toISOString(), epoch, sequence: `${sequence}`, data };
  return [toCloudEvent(applicationId, facts)];
}
