import type { ApiKey, Latchkey, Scope } from '@latchkey/client';
import { describeLength, KEY_NAME } from '@latchkey/contract/lengths';
import { SCOPES } from '@latchkey/contract/scopes';
import { InvalidArgumentError, Option } from 'commander';
import { findByNameOrId } from '../lookup/find.ts';
import { resolveApplication } from '../lookup/resolve.ts';
import { formatTime } from '../output/text.ts';
import { type CliCommand, daysOption, overlapOption, yesOption } from '../program/command.ts';
import type { Context } from '../program/context.ts';
import { CliError } from '../program/errors.ts';
import { addSessionOptions, type SessionOptions, withSession } from '../session/session.ts';

const DAY_MS = 86_400_000;

export interface RightsOptions extends SessionOptions {
  readonly scopes?: Scope[];
  readonly app?: string[];
  readonly allApps?: boolean;
}

interface KeyOptions extends RightsOptions {
  readonly name?: string;
  readonly expires?: string;
}

export function addApiKeys(program: CliCommand): void {
  const keys = program
    .group('api-keys')
    .summary('Manage management keys (asks for the password)')
    .description('Manage management keys; asks for the password, as keys may not manage keys');
  addSessionOptions(keys.command('list').description('List all keys of the account'))
    .run(listKeys)
    .examples(['latchkey api-keys list', 'Names, last use, expiry']);
  const create = keys
    .command('create')
    .description('Create a key and print it: it is shown this once')
    .argument('<name>', describeLength(KEY_NAME));
  addKeyOptions(create)
    .run(createKey)
    .examples(
      [
        'latchkey api-keys create ci-upload --scopes files:upload --app "Difference Engine"',
        'A key that uploads, and nothing else',
      ],
      ['latchkey api-keys create laptop --all-apps --expires 90d', 'Every scope and application, for 90 days'],
    );
  const edit = keys
    .command('edit')
    .description('Change a key; it holds from its next request on')
    .argument('<key>', 'name or id')
    .option('--name <name>', `new name, ${describeLength(KEY_NAME)}`);
  addKeyOptions(edit)
    .run(editKey)
    .examples(['latchkey api-keys edit ci-upload --scopes files:upload,files:read', 'Replace its scopes']);
  const revoke = keys
    .command('revoke')
    .description('Revoke a key, which is rejected from its next request on')
    .argument('<key>', 'name or id')
    .addOption(yesOption());
  addSessionOptions(revoke).run(revokeKey).examples(['latchkey api-keys revoke ci-upload', 'Revoke it by its name']);
  const requests = keys
    .command('requests')
    .description('Show the requests of a key by day')
    .argument('<key>', 'name or id')
    .addOption(daysOption());
  addSessionOptions(requests)
    .run(showRequests)
    .examples(['latchkey api-keys requests ci-upload --days 7', 'The last week, today included']);
  const rotate = keys
    .command('rotate')
    .description('Replace a key by one with the same rights, and print it: it is shown this once')
    .argument('<key>', 'name or id')
    .addOption(overlapOption());
  addSessionOptions(rotate)
    .run(rotateKey)
    .examples(['latchkey api-keys rotate ci-upload --overlap 24h', 'The old key works for another day']);
}

interface DaysOptions extends SessionOptions {
  readonly days: number;
}

function showRequests(context: Context, wanted: string, { days, ...options }: DaysOptions): Promise<void> {
  return withSession(context, options, async (client) => {
    const requests = await client.apiKeys.requests((await findKey(client, wanted)).id, { days });
    const rows = requests.map((day) => [day.date, String(day.requests)]);
    context.printTable(requests, ['DAY (UTC)', 'REQUESTS'], rows);
  });
}

interface RotateOptions extends SessionOptions {
  /** Seconds. */
  readonly overlap?: number;
}

function rotateKey(context: Context, wanted: string, { overlap: overlapSeconds, ...options }: RotateOptions): Promise<void> {
  return withSession(context, options, async (client) => {
    const { id, name } = await findKey(client, wanted);
    const key = await client.apiKeys.rotate(id, overlapSeconds === undefined ? {} : { overlapSeconds });
    context.note(`Rotated key "${name}". Store the new one now: it is not shown again.`);
    context.print(key, key.plaintextKey);
  });
}

function addKeyOptions(command: CliCommand): CliCommand {
  const withRights = addRightsOptions(command);
  return addSessionOptions(
    withRights.option('--expires <when>', 'days such as 90d, a date such as 2027-01-31, or never', readExpiry),
  );
}

export function addRightsOptions(command: CliCommand): CliCommand {
  const readScopes = (text: string): Scope[] => {
    const scopes = text.split(',').map((scope) => scope.trim());
    const unknown = scopes.find((scope) => !SCOPES.includes(scope as Scope));
    if (unknown !== undefined) throw new InvalidArgumentError(`There is no scope ${unknown}. Scopes: ${SCOPES.join(', ')}.`);
    return scopes as Scope[];
  };
  const collect = (app: string, apps: string[] = []) => [...apps, app];
  return command
    .option('--scopes <scopes>', 'what it may do, separated by commas; a new key has all scopes without it', readScopes)
    .addOption(
      new Option('-a, --app <app>', 'an application that it may use; repeatable').argParser(collect).conflicts('allApps'),
    )
    .option('--all-apps', 'it may use all applications');
}

const NEVER = 'never';

function readExpiry(text: string): string {
  // Commander makes an empty text of null.
  if (text === NEVER) return text;
  const [, days] = /^([1-9]\d{0,4})d$/.exec(text) ?? [];
  const date = days === undefined ? new Date(text) : new Date(Date.now() + Number(days) * DAY_MS);
  if (Number.isNaN(date.getTime())) throw new InvalidArgumentError('It must be days such as 90d, a date, or never.');
  return date.toISOString();
}

async function toFields(client: Latchkey, { expires, ...options }: KeyOptions) {
  return {
    ...(await toRights(client, options)),
    ...(expires !== undefined && { expiresAt: expires === NEVER ? null : expires }),
  };
}

export async function toRights(client: Latchkey, { scopes, app, allApps }: RightsOptions) {
  const applicationIds: string[] = [];
  for (const wanted of app ?? []) applicationIds.push((await resolveApplication(client, wanted)).id);
  return {
    ...(scopes && { scopes }),
    ...(allApps && { allApplications: true, applicationIds: [] }),
    ...(app && { allApplications: false, applicationIds }),
  };
}

function listKeys(context: Context, options: SessionOptions): Promise<void> {
  return withSession(context, options, async (client) => {
    const keys = await client.apiKeys.list();
    const rows = keys.map((key) => [
      key.name,
      `…${key.keyLast4}`,
      key.allApplications ? 'all' : String(key.applicationIds.length),
      formatTime(key.lastUsedAt),
      toState(key),
    ]);
    context.printTable(keys, ['NAME', 'KEY', 'APPS', 'LAST USED (UTC)', 'STATE'], rows);
  });
}

function toState({ revokedAt, expiresAt }: ApiKey): string {
  if (revokedAt !== null) return 'revoked';
  if (expiresAt === null) return 'valid';
  return Date.parse(expiresAt) <= Date.now() ? 'expired' : `until ${expiresAt.slice(0, 10)}`;
}

function createKey(context: Context, name: string, options: KeyOptions): Promise<void> {
  if (options.app === undefined && !options.allApps) {
    throw new CliError('usage', 'Which applications may the key use? Add --app <app> or --all-apps.');
  }
  return withSession(context, options, async (client) => {
    const fields = { scopes: [...SCOPES], allApplications: true, ...(await toFields(client, options)) };
    const key = await client.apiKeys.create({ name, ...fields });
    context.note(`Created key "${key.name}". Store it now: it is not shown again.`);
    context.print(key, key.plaintextKey);
  });
}

function editKey(context: Context, wanted: string, options: KeyOptions): Promise<void> {
  const { name, scopes, app, allApps, expires } = options;
  if ([name, scopes, app, allApps, expires].every((given) => given === undefined)) {
    throw new CliError('usage', 'Nothing to change. Add --name, --scopes, --app, --all-apps or --expires.');
  }
  return withSession(context, options, async (client) => {
    const { id } = await findKey(client, wanted);
    const { etag: ifMatch } = await client.apiKeys.read(id);
    const changes = { ...(await toFields(client, options)), ...(name !== undefined && { name }) };
    const key = await client.apiKeys.update(id, changes, { ifMatch });
    context.print(key, `Changed key "${key.name}".`);
  });
}

function revokeKey(context: Context, wanted: string, options: SessionOptions): Promise<void> {
  return withSession(context, options, async (client) => {
    const { id, name } = await findKey(client, wanted);
    await context.confirm(`Revoke key "${name}"? Programs that use it are rejected from their next request on.`);
    context.print(await client.apiKeys.revoke(id), `Revoked key "${name}".`);
  });
}

/** Revoked and expired keys keep their names, which others may have too, as after a rotation. */
async function findKey(client: Latchkey, wanted: string): Promise<ApiKey> {
  const keys = await client.apiKeys.list();
  return findByNameOrId(
    keys.filter((key) => !['revoked', 'expired'].includes(toState(key)) || key.id === wanted),
    wanted,
    'valid key',
    'latchkey api-keys list',
  );
}
