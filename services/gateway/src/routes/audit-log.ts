import { timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import { AUDIT_PAGE_SIZE as PAGE } from '@latchkey/contract/page-size';
import { ActorKind, type AuditEntry } from '@latchkey/proto/latchkey/audit/v1/audit_pb';
import { z } from 'zod';
import { component, defineRoute, type RouteContext } from '../routing/route.ts';
import { anyText, EXAMPLE_IDS, idText, queryNumber, timestamp } from '../routing/schemas.ts';
import { toSettingName } from './application-settings.ts';

const query = z
  .object({
    limit: queryNumber(1, PAGE.max, PAGE.default, `Entries of a page, ${PAGE.default} by default.`, PAGE.default),
    cursor: anyText.optional().meta({
      description: '`nextCursor` of the page before; absent means the newest entries.',
      examples: ['1778576400000.019a9e41-5d20-7c11-b4f7-61e0a8c2d953.dGhlIE1BQyBvZiBhIHBhZ2'],
    }),
    // Unlike other ids, one that names nothing has an empty log.
    applicationId: z.optional(z.string()).meta({
      description: 'Only what was done to this application and its files. Its id comes from `listApplications`.',
      examples: [EXAMPLE_IDS.application],
    }),
    action: z
      .string()
      .regex(/^[\w.]{1,64}$/, 'must be 1 to 64 letters, digits, underscores and dots')
      .optional()
      .meta({ description: 'Only this action. Not together with `applicationId`.', examples: ['application.created'] }),
  })
  .refine(({ applicationId, action }) => applicationId === undefined || action === undefined, {
    path: ['action'],
    message: 'must be absent with applicationId',
  });

const ACTOR_KINDS = ['api_key', 'session', 'operator', 'service', 'anonymous'] as const;

const entry = component('AuditEntry', {
  id: idText,
  at: timestamp,
  action: z.string().meta({ examples: ['application.created'] }),
  actor: z.object({
    kind: z.enum(ACTOR_KINDS).meta({
      description:
        'What it was done with: `operator` is a command of the operator, `service` is the service itself, `anonymous` is a client without a credential.',
    }),
    credentialId: z.string().nullable().meta({ description: 'Id of the API key, or of the session.' }),
    address: z.string().nullable().meta({ description: 'IP address of the client.' }),
  }),
  requestId: z.string().nullable(),
  subject: z.object({ kind: z.enum(['account', 'api_key', 'application', 'file']), id: idText }),
  applicationId: z.string().nullable(),
  changes: z
    .record(z.string(), z.unknown())
    .meta({ description: 'What changed, by name; never a secret.', examples: [{ name: 'Photo Editor' }] }),
});

export const auditLogRoutes = ({ clients: { auditLogs }, cursors }: RouteContext) => ({
  listAuditEntries: defineRoute('GET /api/v1/panel/audit-log', 'session', {
    summary: 'List what was done in the account',
    description: [
      'Who did what, when, from where and with which credential; newest first. `nextCursor` is null on the last page.',
      'Entries that are written while pages are read come before the first of them, and are on none of the further ones.',
    ].join(' '),
    query,
    isLarge: true,
    data: z.object({ entries: z.array(entry), nextCursor: z.string().nullable() }),
    message: 'Successfully fetched audit log',
    handle: async ({ principal: { accountId }, query: { limit, ...asked } }) => {
      const after = asked.cursor === undefined ? undefined : cursors.parse(accountId, asked.cursor);
      const before = after && { before: { at: timestampFromMs(after.atMs), id: after.id } };
      const request = { accountId, limit, filter: toFilter(asked), ...before };
      const pages = await Promise.all(auditLogs.map((log) => log.listAuditEntries(request)));
      const all = pages.flatMap((page) => page.entries).sort(newestFirst);
      const entries = all.slice(0, limit);
      const last = entries.at(-1);
      const hasMore = all.length > limit || pages.some((page) => page.hasMore);
      const nextCursor = last && hasMore ? cursors.sign(accountId, { atMs: msOf(last), id: last.id }) : null;
      return { entries: entries.map(toJson), nextCursor };
    },
  }),
});

function toFilter({ applicationId, action }: Omit<z.output<typeof query>, 'limit'>) {
  if (applicationId !== undefined) return { case: 'applicationId' as const, value: applicationId };
  return action === undefined ? { case: undefined } : { case: 'action' as const, value: action };
}

/** The order of each service's page. Ids are in lower case, so texts sort like their bytes. */
function newestFirst(a: AuditEntry, b: AuditEntry): number {
  return msOf(b) - msOf(a) || (a.id < b.id ? 1 : -1);
}

const msOf = ({ at }: AuditEntry) => (at ? timestampMs(at) : 0);

function toJson(found: AuditEntry) {
  const { credentialId, address, subjectKind, subjectId } = found;
  const actor = { kind: ActorKind[found.actorKind].toLowerCase(), credentialId, address };
  return { ...found, actor, subject: { kind: subjectKind, id: subjectId }, changes: toChanges(found) };
}

/** The changes of an entry; the apps service names settings as the protocol does. */
function toChanges({ changesJson }: AuditEntry): Readonly<Record<string, unknown>> {
  const changes = JSON.parse(changesJson) as Readonly<Record<string, unknown>>;
  return 'field' in changes ? { ...changes, field: toSettingName(changes.field) } : changes;
}
