import type { Upload } from '@latchkey/client';
import { Command } from 'commander';
import { formatPart, formatTime } from '../output/text.ts';
import { examples, withContext, yesOption } from '../program/command.ts';
import { CliError } from '../program/errors.ts';
import type { Io } from '../program/io.ts';

export function uploadsCommand(io: Io): Command {
  const uploads = new Command('uploads').description('Unfinished uploads, which "latchkey files upload" continues');
  addList(uploads, io);
  addEnd(uploads, io);
  return uploads;
}

function addList(uploads: Command, io: Io): void {
  const command = uploads
    .command('list')
    .description('List the unfinished uploads of the account, oldest first')
    .action(
      withContext(io, async (context) => {
        const found = await (await context.client()).uploads.list();
        const rows = found.map(({ id, applicationId, fileName, byteOffset, byteSize, expiresAt }) => [
          fileName,
          formatPart(byteOffset, byteSize),
          formatTime(expiresAt),
          applicationId,
          id,
        ]);
        context.printTable(found, ['NAME', 'STORED', 'EXPIRES (UTC)', 'APPLICATION', 'ID'], rows);
      }),
    );
  examples(command, [['latchkey uploads list', 'List them']]);
}

function addEnd(uploads: Command, io: Io): void {
  const command = uploads
    .command('end')
    .description('End unfinished uploads: what they stored is removed, and their names are free')
    .argument('<upload...>', 'names or ids')
    .addOption(yesOption())
    .action(
      withContext(io, async (context, wanted: string[]) => {
        const client = await context.client();
        const unfinished = await client.uploads.list();
        const found = wanted.map((text) => find(unfinished, text));
        const names = found.map(({ fileName }) => fileName).join(', ');
        await context.confirm(`End the upload of ${names}?`);
        for (const { id } of found) await client.uploads.end(id);
        context.print(found, `Ended the upload of ${names}.`);
      }),
    );
  examples(command, [['latchkey uploads end setup.exe --yes', 'End one without a question']]);
}

function find(uploads: readonly Upload[], text: string): Upload {
  const [found, ...others] = uploads.filter(({ id, fileName }) => id === text || fileName === text);
  if (!found) throw new CliError('notFound', `No unfinished upload is called ${text}. List them: latchkey uploads list`);
  if (others.length > 0) throw new CliError('usage', `Several unfinished uploads are called ${text}. Use an id.`);
  return found;
}
