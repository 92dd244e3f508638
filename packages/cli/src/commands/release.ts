import { CHANNEL, CHANNEL_RULE, STABLE_CHANNEL } from '@latchkey/contract/release';
import { InvalidArgumentError } from 'commander';
import { openApplication } from '../lookup/resolve.ts';
import { formatTime } from '../output/text.ts';
import { appOption, type CliCommand, wholeNumber } from '../program/command.ts';
import { publishFiles } from '../release/publish-files.ts';

export function addRelease(program: CliCommand): void {
  const release = program.group('release').description('Publish releases to updaters');
  release
    .command('publish')
    .description(
      'Upload files, and publish them as a release. Platform, architecture and version are those in the names; *.sig and *.minisig sign the file they are named after',
    )
    .argument('<path...>', 'files and their signatures; folders, *.yml, *.blockmap and *.txt are skipped')
    .addOption(appOption().env('LATCHKEY_APP'))
    .option('--channel <channel>', 'channel', readChannel, STABLE_CHANNEL)
    .option('--release-version <version>', 'Semantic Version; that in the names of the files unless set')
    .option('--notes <path>', 'file with notes; of a changelog, only the section of the version')
    .option(
      '--rollout <percent>',
      'share of the clients that are offered it',
      wholeNumber(0, 100, 'a whole number from 0 to 100'),
      100,
    )
    .option('--draft', 'leave it as a draft')
    .run(publishFiles)
    .examples([
      'latchkey release publish dist/* --app "Difference Engine" --channel beta --notes CHANGELOG.md',
      'Publish a build',
    ]);
  release
    .command('list')
    .description('List the releases of an application, newest first')
    .addOption(appOption().env('LATCHKEY_APP'))
    .run(async (context, { app }: { app: string }) => {
      const { client, id } = await openApplication(context, app);
      const found = await client.releases.list(id);
      const rows = found.map(({ id, version, channel, status, rolloutPercent, publishedAt }) => {
        return [version, channel, status, `${rolloutPercent} %`, publishedAt ? formatTime(publishedAt) : '-', id];
      });
      context.printTable(found, ['VERSION', 'CHANNEL', 'STATUS', 'ROLL-OUT', 'PUBLISHED (UTC)', 'ID'], rows);
    })
    .examples(['latchkey release list --app "Difference Engine"', 'List its releases']);
  release
    .command('yank')
    .description('Withdraw a published release from updaters')
    .argument('<release>', 'id of the release')
    .option('--reason <text>', 'reason, for the audit log')
    .run(async (context, id: string, { reason }: { readonly reason?: string }) => {
      const yanked = await (await context.client()).releases.yank(id, { reason });
      context.print(yanked, `Yanked ${yanked.version} of ${yanked.channel}.`);
    })
    .examples(['latchkey release yank 019a9e47-4b1a-7c63-9d2f-8e5f0a6c3b71', 'Withdraw a release']);
}

function readChannel(text: string): string {
  if (CHANNEL.test(text)) return text;
  throw new InvalidArgumentError(`It ${CHANNEL_RULE}.`);
}
