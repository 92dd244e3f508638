import type { CliCommand } from '../program/command.ts';

export function addLimits(program: CliCommand): void {
  program
    .command('limits')
    .description('Show usage and limits of the account')
    .run(async (context) => {
      const limits = await (await context.client()).limits.get();
      const counted = [
        ['Storage, MiB', limits.storageSizeMib],
        ['Files', limits.uploadedFilesCount],
        ['Applications', limits.createdApplicationsCount],
        ['API keys', limits.apiKeyCount],
      ] as const;
      const rows = counted.map(([name, { currentValue, maxValue }]) => [name, `${currentValue}`, `${maxValue ?? 'unlimited'}`]);
      rows.push(['Largest file, MiB', '', String(limits.fileSizeMiB)]);
      context.printTable(limits, [limits.planName, 'USED', 'LIMIT'], rows);
    })
    .examples(['latchkey limits --json | jq .storageSizeMib.currentValue', 'Print the MiB in use']);
}
