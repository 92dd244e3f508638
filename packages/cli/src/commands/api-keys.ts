import type { ApiKey, Latchkey, Scope } from '@latchkey/client';
import { describeLength, KEY_NAME } from '@latchkey/contract/lengths';
import { SCOPES } from '@latchkey/contract/scopes';
import { InvalidArgumentError, Option } from 'commander';
import { findByNameOrId } from '../lookup/find.ts';
import { resolveApplication } from '../lookup/resolve.ts';
import { formatTime } from '../output/text.ts';
import { type CliCommand, daysOption, overlapOption, yesOption } from '../program/command.ts';
import { CliError } from '../program/errors.ts';

const DAY_MS = 86_400_000;

const KEY = ['<key>', 'name or id'] as const;

export interface RightsOptions {
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
  keys
    .command('list')
    .description('List all keys of the account')
    .runInSession(async (context, client) => {
      const found = await client.apiKeys.list();
      const rows = found.map((key) => [
        key.name,
        `…${key.keyLast4}`,
        key.allApplications ? 'all' : String(key.applicationIds.length),
        formatTime(key.lastUsedAt),
        toState(key),
      ]);
      context.printTable(found, ['NAME', 'KEY', 'APPS', 'LAST USED (UTC)', 'STATE'], rows);
    })
    .examples(['latchkey api-keys list', 'Names, last use, expiry']);
  addCreateAndEdit(keys);
  keys
    .command('revoke')
    .description('Revoke a key, which is rejected from its next request on')
    .argument(...KEY)
    .addOption(yesOption())
    .runInSession(async (context, client, wanted: string) => {
      const { id, name } = await findKey(client, wanted);
      await context.confirm(`Revoke key "${name}"? Programs that use it are rejected from their next request on.`);
      context.print(await client.apiKeys.revoke(id), `Revoked key "${name}".`);
    })
    .examples(['latchkey api-keys revoke ci-upload', 'Revoke it by its name']);
  keys
    .command('requests')
    .description('Show the requests of a key by day')
    .argument(...KEY)
    .addOption(daysOption())
    .runInSession(async (context, client, wanted: string, { days }: { readonly days: number }) => {
      const requests = await client.apiKeys.requests((await findKey(client, wanted)).id, { days });
      const rows = requests.map((day) => [day.date, String(day.requests)]);
      context.printTable(requests, ['DAY (UTC)', 'REQUESTS'], rows);
    })
    .examples(['latchkey api-keys requests ci-upload --days 7', 'The last week, today included']);
  keys
    .command('rotate')
    .description('Replace a key by one with the same rights, and print it: it is shown this once')
    .argument(...KEY)
    .addOption(overlapOption())
    .runInSession(async (context, client, wanted: string, { overlap: overlapSeconds }: { readonly overlap?: number }) => {
      const { id, name } = await findKey(client, wanted);
      const key = await client.apiKeys.rotate(id, { overlapSeconds });
      context.note(`Rotated key "${name}". Store the new one now: it is not shown again.`);
      context.print(key, key.plaintextKey);
    })
    .examples(['latchkey api-keys rotate ci-upload --overlap 24h', 'The old key works for another day']);
}

function addCreateAndEdit(keys: CliCommand): void {
  const expires = () =>
    new Option('--expires <when>', 'days such as 90d, a date such as 2027-01-31, or never').argParser(readExpiry);
  addRightsOptions(
    keys
      .command('create')
      .description('Create a key and print it: it is shown this once')
      .argument('<name>', describeLength(KEY_NAME)),
  )
    .addOption(expires())
    .hook('preAction', (command) => requireApps(command.opts(), 'the key'))
    .runInSession(async (context, client, name: string, options: KeyOptions) => {
      const fields = { scopes: [...SCOPES], allApplications: true, ...(await toFields(client, options)) };
      const key = await client.apiKeys.create({ name, ...fields });
      context.note(`Created key "${key.name}". Store it now: it is not shown again.`);
      context.print(key, key.plaintextKey);
    })
    .examples(
      [
        'latchkey api-keys create ci-upload --scopes files:upload --app "Difference Engine"',
        'A key that uploads, and nothing else',
      ],
      ['latchkey api-keys create laptop --all-apps --expires 90d', 'Every scope and application, for 90 days'],
    );
  addRightsOptions(
    keys
      .command('edit')
      .description('Change a key; it holds from its next request on')
      .argument(...KEY)
      .option('--name <name>', `new name, ${describeLength(KEY_NAME)}`),
  )
    .addOption(expires())
    .hook('preAction', (command) => requireChange(command.opts()))
    .runInSession(async (context, client, wanted: string, { name, ...options }: KeyOptions) => {
      const { id } = await findKey(client, wanted);
      const { etag: ifMatch } = await client.apiKeys.read(id);
      const key = await client.apiKeys.update(id, { ...(await toFields(client, options)), name }, { ifMatch });
      context.print(key, `Changed key "${key.name}".`);
    })
    .examples(['latchkey api-keys edit ci-upload --scopes files:upload,files:read', 'Replace its scopes']);
}

/** Before the password is asked for. @param user of the key, in the message */
export function requireApps({ app, allApps }: RightsOptions, user: string): void {
  if (app || allApps) return;
  throw new CliError('usage', `Which applications may ${user} use? Add --app <app> or --all-apps.`);
}

function requireChange({ name, scopes, app, allApps, expires }: KeyOptions): void {
  if ([name, scopes, app, allApps, expires].some((given) => given !== undefined)) return;
  throw new CliError('usage', 'Nothing to change. Add --name, --scopes, --app, --all-apps or --expires.');
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
  return { ...(await toRights(client, options)), expiresAt: expires === NEVER ? null : expires };
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

function toState({ revokedAt, expiresAt }: ApiKey): string {
  if (revokedAt !== null) return 'revoked';
  if (expiresAt === null) return 'valid';
  return Date.parse(expiresAt) <= Date.now() ? 'expired' : `until ${expiresAt.slice(0, 10)}`;
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
