import { randomUUID } from 'node:crypto';
import { timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import { Code, ConnectError } from '@connectrpc/connect';
import { ActorKind, type ListAuditEntriesRequest } from '@latchkey/proto/latchkey/audit/v1/audit_pb';
import { PrincipalKind } from '@latchkey/proto/latchkey/identity/v1/authentication_pb';
import { beforeEach, describe, expect, it } from 'vitest';
import { createCursorSigner } from '../cursor/audit-cursor.ts';
import { toKey, useTestGateway } from '../testing/test-gateway.ts';

const ACCOUNT_ID = randomUUID();
const SERVICES = ['identity', 'apps', 'files'] as const;
type Service = (typeof SERVICES)[number];

interface Entry {
  readonly id: string;
  readonly atMs: number;
}

/** Entries of each service, its requests, and its error. */
let held: Record<Service, Entry[]>;
let asked: Array<readonly [Service, ListAuditEntriesRequest]>;
let failures: Partial<Record<Service, ConnectError>>;
beforeEach(() => {
  held = { identity: [], apps: [], files: [] };
  asked = [];
  failures = {};
});

const newestFirst = (a: Entry, b: Entry) => b.atMs - a.atMs || Number(a.id < b.id) - Number(a.id > b.id);

/** Answers as each service does. */
const auditLog = (service: Service) => ({
  async listAuditEntries(request: ListAuditEntriesRequest) {
    asked.push([service, request]);
    if (failures[service]) throw failures[service];
    const { before, limit } = request;
    const position = before?.at && { atMs: timestampMs(before.at), id: before.id };
    const older = held[service].filter((entry) => !position || newestFirst(position, entry) < 0).sort(newestFirst);
    const entries = older.slice(0, limit).map(({ id, atMs }) => ({
      id,
      at: timestampFromMs(atMs),
      action: 'thing.done',
      actorKind: ActorKind.SERVICE,
      subjectKind: 'account',
      subjectId: ACCOUNT_ID,
      changesJson: JSON.stringify({ field: 'user_requires_license', value: true }),
    }));
    return { entries, hasMore: older.length > limit };
  },
});

const gateway = useTestGateway({
  auditLogs: { identity: auditLog('identity'), apps: auditLog('apps'), files: auditLog('files') },
  authentication: {
    authenticate: async ({ credential: { value = '' } }) =>
      toKey([], { kind: PrincipalKind.SESSION, accountId: value === 'other' ? randomUUID() : ACCOUNT_ID }),
  },
});

async function get(query: string, session = 'owner') {
  const path = `/api/v1/panel/audit-log?${query}`;
  const { outcome, envelope } = await gateway.send('GET', path, { headers: { cookie: `session=${session}` } });
  return { outcome, data: envelope.data as { entries: Entry[]; nextCursor: string | null } };
}

const add = (service: Service, ...times: number[]) => {
  held[service].push(...times.map((atMs) => ({ id: randomUUID(), atMs })));
};
const allHeld = () => SERVICES.flatMap((service) => held[service]).sort(newestFirst);

describe('the audit log of an account', () => {
  it('merges all services in one order, on pages of any size, without gaps or repetition while entries are written', async () => {
    add('identity', 1, 5, 5, 5, 9, 12);
    add('apps', 5, 5, 2, 2, 2, 2, 2, 2);
    add('files', 5, 30);
    const expected = allHeld().map(({ id }) => id);
    for (const limit of [1, 2, 3, 5, 15, 16, 17, 100]) {
      const seen: string[] = [];
      for (let cursor = '', pages = 0; pages === 0 || cursor !== ''; pages += 1) {
        const { data } = await get(`limit=${limit}${cursor && `&cursor=${cursor}`}`);
        expect(data.entries.length).toBeLessThanOrEqual(limit);
        seen.push(...data.entries.map(({ id }) => id));
        cursor = data.nextCursor ?? '';
        // Newer than all; the next walk leaves them out.
        add(SERVICES[pages % 3] as Service, 1_000 + pages);
      }
      expect(seen.filter((id) => expected.includes(id))).toEqual(expected);
      expect(new Set(seen).size).toBe(seen.length);
      for (const service of SERVICES) held[service] = held[service].filter(({ atMs }) => atMs < 1_000);
    }
  });

  it('ends with a page without a cursor, even a full one', async () => {
    add('apps', 1, 2, 3);
    expect((await get('limit=3')).data.nextCursor).toBeNull();
    for (const service of ['apps', 'files'] as const) {
      add(service, 1);
      expect((await get('limit=3')).data.nextCursor).not.toBeNull();
      held[service].pop();
    }
    held = { identity: [], apps: [], files: [] };
    expect((await get('')).data).toEqual({ entries: [], nextCursor: null });
  });

  it('has null for what an entry lacks, and settings by their names in this interface', async () => {
    add('apps', Date.parse('2026-05-12T09:00:00.120Z'));
    const { data } = await get('');
    expect(data.entries).toEqual([
      {
        id: held.apps[0]?.id,
        at: '2026-05-12T09:00:00.120Z',
        action: 'thing.done',
        actor: { kind: 'service', credentialId: null, address: null },
        requestId: null,
        subject: { kind: 'account', id: ACCOUNT_ID },
        applicationId: null,
        changes: { field: 'applicationUserRequiresLicense', value: true },
      },
    ]);
  });

  it('is read from each service once, for the account of the session and with the filter', async () => {
    await get('limit=7&action=file.deleted');
    const applicationId = randomUUID();
    await get(`applicationId=${applicationId}`);
    expect(asked.map(([service]) => service).toSorted()).toEqual([...SERVICES, ...SERVICES].toSorted());
    for (const [, request] of asked) expect(request.accountId).toBe(ACCOUNT_ID);
    expect(asked.slice(0, 3).map(([, { limit, filter }]) => [limit, filter.value])).toEqual(Array(3).fill([7, 'file.deleted']));
    expect(asked.slice(3).map(([, { limit, filter }]) => [limit, filter.value])).toEqual(Array(3).fill([50, applicationId]));
  });

  it.each(SERVICES)('is not returned in part while %s is away', async (service) => {
    for (const each of SERVICES) add(each, 1);
    failures[service] = new ConnectError('away', Code.Unavailable);
    expect((await get('')).outcome).toBe('503 INTERNAL_ERROR');
    failures = {};
    expect((await get('')).data.entries).toHaveLength(3);
  });
});

describe('a cursor', () => {
  const id = randomUUID();
  const cursorOf = async () => (await get('limit=1')).data.nextCursor ?? '';

  it('continues after its page, even if that entry is gone', async () => {
    add('files', 1, 2, 3);
    const cursor = await cursorOf();
    held.files.pop();
    const { data } = await get(`cursor=${cursor}`);
    expect(data.entries.map(({ id }) => id)).toEqual([held.files[1]?.id, held.files[0]?.id]);
  });

  it('is valid for gateways before and after a change of their credential', () => {
    const position = { atMs: 5, id };
    const cursor = createCursorSigner(['newer', 'older']).sign(ACCOUNT_ID, position);
    const parse = (...secrets: string[]) => createCursorSigner(secrets).parse(ACCOUNT_ID, cursor);
    for (const secrets of [['newer', 'older'], ['older', 'newer'], ['newer']]) expect(parse(...secrets)).toEqual(position);
    expect(() => parse('older', 'other')).toThrow('Invalid cursor');
  });

  it.each<readonly [string, (cursor: string) => string]>([
    ['empty', () => ''],
    ['without a signature', (cursor) => cursor.slice(0, cursor.lastIndexOf('.'))],
    ['with a made-up signature', (cursor) => `${cursor.slice(0, -22)}${'A'.repeat(22)}`],
    ['with the signature of another position', (cursor) => `2.${id}${cursor.slice(cursor.lastIndexOf('.'))}`],
    ['with another time', (cursor) => `1${cursor}`],
    ['very long', () => 'A'.repeat(5_000)],
  ])('that is %s is rejected, and no service is called', async (_what, forge) => {
    add('apps', 12, 13);
    const cursor = await cursorOf();
    asked = [];
    const forged = forge(cursor);
    expect(forged).not.toBe(cursor);
    expect((await get(`cursor=${encodeURIComponent(forged)}`)).outcome).toBe('400 bad_request');
    expect(asked).toEqual([]);
  });

  it('of another account is rejected', async () => {
    add('apps', 12, 13);
    const cursor = await cursorOf();
    expect((await get(`cursor=${cursor}`, 'other')).outcome).toBe('400 bad_request');
    expect((await get(`cursor=${cursor}`)).outcome).toBe('200');
  });
});

it.each([
  'limit=0',
  'limit=101',
  'limit=1.5',
  'limit=1&limit=2',
  'action=a%20b',
  `action=${'a'.repeat(65)}`,
  'action=file.deleted&applicationId=01900000-0000-7000-8000-00000000dead',
  'cursor=a&cursor=b',
  'cursor=%00',
])('a request with %s is rejected', async (query) => {
  expect((await get(query)).outcome).toBe('400 VALIDATION_ERROR');
  expect(asked).toEqual([]);
});
