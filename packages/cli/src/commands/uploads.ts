import type { Upload } from '@latchkey/client';
import { formatPart, formatTime } from '../output/text.ts';
import { type CliCommand, yesOption } from '../program/command.ts';
import { CliError } from '../program/errors.ts';

export function addUploads(program: CliCommand): void {
  const uploads = program.group('uploads').description('Unfinished uploads, which "latchkey files upload" continues');
  uploads
    .command('list')
    .description('List the unfinished uploads of the account, oldest first')
    .run(async (context) => {
      const found = await (await context.client()).uploads.list();
      const rows = found.map(({ id, applicationId, fileName, byteOffset, byteSize, expiresAt }) => {
        return [fileName, formatPart(byteOffset, byteSize), formatTime(expiresAt), applicationId, id];
      });
      context.printTable(found, ['NAME', 'STORED', 'EXPIRES (UTC)', 'APPLICATION', 'ID'], rows);
    })
    .examples(['latchkey uploads list', 'List them']);
  uploads
    .command('end')
    .description('End unfinished uploads: what they stored is removed, and their names are free')
    .argument('<upload...>', 'names or ids')
    .addOption(yesOption())
    .run(async (context, wanted: string[]) => {
      const client = await context.client();
      const unfinished = await client.uploads.list();
      const found = wanted.map((text) => find(unfinished, text));
      const names = found.map(({ fileName }) => fileName).join(', ');
      await context.confirm(`End the upload of ${names}?`);
      for (const { id } of found) await client.uploads.end(id);
      context.print(found, `Ended the upload of ${names}.`);
    })
    .examples(['latchkey uploads end setup.exe --yes', 'End one without a question']);
}

function find(uploads: readonly Upload[], text: string): Upload {
  const [found, ...others] = uploads.filter(({ id, fileName }) => id === text || fileName === text);
  if (!found) throw new CliError('notFound', `No unfinished upload is called ${text}. List them: latchkey uploads list`);
  if (others.length > 0) throw new CliError('usage', `Several unfinished uploads are called ${text}. Use an id.`);
  return found;
}
