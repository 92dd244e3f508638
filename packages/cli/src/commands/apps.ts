import type { Application, ApplicationListItem, Latchkey } from '@latchkey/client';
import { APPLICATION_NAME, describeLength } from '@latchkey/contract/lengths';
import { APPLICATION_SORTS } from '@latchkey/contract/list-order';
import {
  APPLICATION_FLAGS,
  APPLICATION_TEXTS,
  FLAG_NAMES,
  TEXT_NAMES,
  type TextName,
} from '@latchkey/contract/setting-definitions';
import { Option } from 'commander';
import type { Named } from '../lookup/find.ts';
import { findApplication, openApplication, resolveApplication } from '../lookup/resolve.ts';
import { formatTime } from '../output/text.ts';
import { APP, type CliCommand, daysOption, yesOption } from '../program/command.ts';
import type { Context } from '../program/context.ts';

/** The flags of an application. An option has the name of the field in the protocol. */
const FLAGS = FLAG_NAMES.map((name) => ({ name, ...APPLICATION_FLAGS[name] }));

const showKeysOption = () => new Option('--show-keys', 'print both runtime keys instead of masking them');

export function addApps(program: CliCommand): void {
  const apps = program
    .group('apps')
    .description('Manage applications')
    .examples(
      ['latchkey apps create "Difference Engine"', 'Create an application'],
      ['latchkey apps pause "Difference Engine"', 'Pause it; its live clients are notified'],
    );
  addReads(apps);
  addCreateAndDelete(apps);
  addStatus(apps, 'pause', 'Pause', 'paused');
  addStatus(apps, 'resume', 'Resume', 'online');
  for (const name of TEXT_NAMES) addText(apps, name);
  addFlags(apps);
}

function addReads(apps: CliCommand): void {
  const sortOption = new Option('--sort <order>', 'order of the list; --desc turns it round');
  apps
    .command('list')
    .description('List all applications with status, version, files and storage')
    .addOption(sortOption.choices(APPLICATION_SORTS).default('name'))
    .option('--desc', 'sort descending')
    .option('--search <text>', 'only those whose name contains this text')
    .addOption(showKeysOption())
    .run(listApps)
    .examples(
      ['latchkey apps list --sort storage --desc', 'Those with the largest files first'],
      ['latchkey apps list --json | jq -r ".[].id"', 'Print the ids'],
    );
  apps
    .command('show')
    .description('Show an application: status, version, flags, levels, files and keys')
    .argument(...APP)
    .addOption(showKeysOption())
    .run(showApp)
    .examples(['latchkey apps show "Difference Engine" --show-keys', 'With its socket key and HTTP key']);
  apps
    .command('usage')
    .description('Show what an application was used for, by day: events, downloads, uploads and live clients')
    .argument(...APP)
    .addOption(daysOption())
    .run(showUsage)
    .examples(['latchkey apps usage "Difference Engine" --days 7', 'The last week, today included']);
}

interface ListOptions {
  readonly sort: (typeof APPLICATION_SORTS)[number];
  readonly desc?: boolean;
  readonly search?: string;
  readonly showKeys?: boolean;
}

async function listApps(context: Context, { sort, desc, search, showKeys }: ListOptions): Promise<void> {
  const client = await context.client();
  const found: ApplicationListItem[] = [];
  for (let page = 1, totalPages = 1; page <= totalPages; page += 1) {
    const read = await client.applications.page({ page, search, sort: desc ? `-${sort}` : sort });
    found.push(...read.applications);
    totalPages = read.totalPages;
  }
  const keys = new Map(showKeys ? (await client.applications.list()).map((app) => [app.id, app.applicationApiKeys]) : []);
  const applications = found.map((app) => ({ ...app, ...(showKeys && { applicationApiKeys: keys.get(app.id) }) }));
  const headings = ['NAME', 'ID', 'STATUS', 'VERSION', 'FILES', 'STORAGE', 'LAST CHANGE (UTC)'];
  const rows = found.map(({ id, name, status, version, files, storedMiB, updatedAt }) => {
    const { socketKey = '', httpKey = '' } = keys.get(id) ?? {};
    const row = [name, id, status, version, String(files), `${storedMiB} MiB`, formatTime(updatedAt)];
    return [...row, ...(showKeys ? [socketKey, httpKey] : [])];
  });
  context.printTable(applications, [...headings, ...(showKeys ? ['SOCKET KEY', 'HTTP KEY'] : [])], rows);
  if (rows.length > 0) return;
  context.note(search === undefined ? 'No applications. Create one: latchkey apps create <name>' : 'No name contains this text.');
}

async function showApp(context: Context, app: string, { showKeys = false }: { showKeys?: boolean }): Promise<void> {
  const client = await context.client();
  const application = withKeys(await findApplication(client, app), showKeys);
  const { id, name, applicationApiKeys } = application;
  const [settings, levels, files] = await Promise.all([
    client.applications.settings(id),
    client.levels.get(id),
    client.files.metadata(id),
  ]);
  const flags = FLAGS.flatMap(({ name, field }) => (settings[name] ? [toOption(field).slice(2)] : []));
  const lines = [
    ['Name', name],
    ['Id', id],
    ['Status', settings.status],
    ...TEXT_NAMES.map((name) => [APPLICATION_TEXTS[name].title, settings[name]]),
    ['Flags', flags.join(', ') || 'none'],
    ['Levels', levels.join(', ') || 'none'],
    ['Files', files.totalFiles === 0 ? 'none' : `${files.totalFiles}, last uploaded ${formatTime(files.lastUploadedAt)}`],
    ['Socket key', applicationApiKeys.socketKey],
    ['HTTP key', applicationApiKeys.httpKey],
  ];
  context.printFields({ ...application, settings, levels, files }, lines);
}

async function showUsage(context: Context, app: string, { days }: { days: number }): Promise<void> {
  const { client, id } = await openApplication(context, app);
  const [usage, clients] = await Promise.all([client.applications.usage(id, { days }), client.applications.liveClients(id)]);
  const rows = usage.map(({ date, events, downloads, uploads, clientsMax }) => [
    date,
    ...[events, downloads, uploads, clientsMax].map(String),
  ]);
  context.printTable(usage, ['DAY (UTC)', 'EVENTS', 'DOWNLOADS', 'UPLOADS', 'MOST CLIENTS'], rows);
  context.note(`Live clients now: ${clients ?? 'not known'}`);
}

function addCreateAndDelete(apps: CliCommand): void {
  apps
    .command('create')
    .description('Create an application: online, with version 1.0 and both runtime keys')
    .argument('<name>', describeLength(APPLICATION_NAME))
    .run(async (context, name: string) => {
      const client = await context.client();
      const created = await client.applications.create({ name });
      // A key without applications:read creates too.
      const applications = await client.applications.list().catch(() => []);
      const stored = applications.find(({ id }) => id === created.id)?.name ?? name;
      context.print(created, `Created ${stored} (${created.id}).`);
      if (applications.filter((application) => application.name === stored).length > 1)
        context.note(`Another application has this name: commands need the id of the one that is meant.`);
    })
    .examples(['latchkey apps create "Difference Engine"', 'Create an application']);
  apps
    .command('delete')
    .description('Delete an application with its files and keys; its live clients are disconnected')
    .argument(...APP)
    .addOption(yesOption())
    .run(async (context, app: string) => {
      const client = await context.client();
      const { id, name } = await (context.options.yes ? resolveApplication : findApplication)(client, app);
      if (!context.options.yes) await confirmDeletion(context, client, { id, name });
      await client.applications.delete(id);
      context.print({ id, ...(name !== id && { name }), deleted: true }, `Deleted ${name}.`);
    })
    .examples(['latchkey apps delete "Difference Engine" --yes', 'Delete it without a question']);
}

async function confirmDeletion(context: Context, client: Latchkey, { id, name }: Named): Promise<void> {
  const { totalFiles } = await client.files.metadata(id);
  const files = totalFiles === 1 ? '1 file' : `${totalFiles} files`;
  await context.confirm(`Delete ${name}? ${files} and both keys are deleted. Connected clients are disconnected.`);
}

function addStatus(apps: CliCommand, verb: 'pause' | 'resume', title: string, status: string): void {
  apps
    .command(verb)
    .description(`${title} an application; its live clients are notified`)
    .argument(...APP)
    .run(async (context, app: string) => {
      const { client, id, name } = await openApplication(context, app);
      await client.applications[verb](id);
      context.print({ id, status }, `${title}d ${name}.`);
    })
    .examples([`latchkey apps ${verb} "Difference Engine"`, `${title} it by its name`]);
}

/** A command that prints a text or sets it. It has the name of the field in the protocol. */
function addText(apps: CliCommand, setting: TextName): void {
  const { field, title, length, example, isLive } = APPLICATION_TEXTS[setting];
  const [verb, noun] = [toOption(field).slice(2), title.toLowerCase()];
  apps
    .command(verb)
    .description(`Print the ${noun} of an application, or set it${isLive ? '; its live clients are notified' : ''}`)
    .argument(...APP)
    .argument(`[${verb}]`, describeLength(length))
    .run(async (context, app: string, value: string | undefined) => {
      const { client, id, name } = await openApplication(context, app);
      if (value === undefined) {
        const { [setting]: current } = await client.applications.settings(id);
        context.print({ id, [setting]: current }, current);
      } else {
        await client.applications.update(id, { [setting]: value });
        context.print({ id, [setting]: value }, `Set the ${noun} of ${name} to ${value}.`);
      }
    })
    .examples(
      [`latchkey apps ${verb} "Difference Engine"`, `Print the ${noun}`],
      [`latchkey apps ${verb} "Difference Engine" ${example}`, 'Set it'],
    );
}

function addFlags(apps: CliCommand): void {
  const command = apps
    .command('flags')
    .description('Print the flags of an application, or set them')
    .argument(...APP)
    .run(async (context, app: string, options: Readonly<Record<string, 'on' | 'off'>>) => {
      const { client, id } = await openApplication(context, app);
      const given = FLAGS.filter(({ field }) => options[field] !== undefined);
      const changes = given.map(({ name, field }) => [name, options[field] === 'on']);
      if (changes.length > 0) await client.applications.update(id, Object.fromEntries(changes));
      const settings = await client.applications.settings(id);
      const flags = FLAGS.map(({ name, field }) => [toOption(field).slice(2), settings[name] ? 'on' : 'off']);
      context.printFields(settings, flags);
    })
    .examples(['latchkey apps flags "Difference Engine" --user-requires-license on', 'Set one of the flags']);
  for (const { field, meaning } of FLAGS) {
    command.addOption(new Option(`${toOption(field)} <on|off>`, meaning).choices(['on', 'off']));
  }
}

/** `userRequiresLicense` as `--user-requires-license`. */
function toOption(name: string): string {
  return `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

/** Runtime keys are secrets of deployed clients: they are printed where they are asked for only. */
function withKeys(application: Application, show: boolean): Application {
  const { socketKey, httpKey, updatedAt } = application.applicationApiKeys;
  const mask = (key: string) => (show ? key : `${key.slice(0, 8)}••••${key.slice(-4)}`);
  return { ...application, applicationApiKeys: { socketKey: mask(socketKey), httpKey: mask(httpKey), updatedAt } };
}
