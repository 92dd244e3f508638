import { Command } from 'commander';
import { examples, withContext } from '../program/command.ts';
import type { Io } from '../program/io.ts';

export function limitsCommand(io: Io): Command {
  const command = new Command('limits').description('Show usage and limits of the account').action(
    withContext(io, async (context) => {
      const limits = await (await context.client()).limits.get();
      const rows = (
        [
          ['Storage, MiB', limits.storageSizeMib],
          ['Files', limits.uploadedFilesCount],
          ['Applications', limits.createdApplicationsCount],
          ['API keys', limits.apiKeyCount],
        ] as const
      ).map(([name, { currentValue, maxValue }]) => [name, String(currentValue), String(maxValue ?? 'unlimited')]);
      rows.push(['Largest file, MiB', '', String(limits.fileSizeMiB)]);
      context.printTable(limits, [limits.planName, 'USED', 'LIMIT'], rows);
    }),
  );
  return examples(command, [['latchkey limits --json | jq .storageSizeMib.currentValue', 'Print the MiB in use']]);
}
