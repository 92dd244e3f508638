import { FILE_NAME_LENGTH } from '@latchkey/contract/file-name';
import { type DownloadOptions, downloadFile } from '../download/download-file.ts';
import { findFile, openApplication, resolveFile } from '../lookup/resolve.ts';
import { formatBytes, formatTime } from '../output/text.ts';
import { appOption, type CliCommand, yesOption } from '../program/command.ts';
import { uploadFiles } from '../upload/upload-files.ts';

const CHECKSUM_SHOWN = 12;

interface AppOption {
  readonly app: string;
}

export function addFiles(program: CliCommand): void {
  const files = program.group('files').description('Upload and manage private files');
  files
    .command('list')
    .addOption(appOption())
    .description('List the files of an application, newest first')
    .option('--search <text>', 'only names that contain this')
    .run(async (context, { app, search = '' }: AppOption & { search?: string }) => {
      const { client, id } = await openApplication(context, app);
      const found = [];
      for await (const file of client.files.iterate(id, { search })) found.push(file);
      const rows = found.map(({ displayName, byteSize, createdAt, checksum }) => {
        return [displayName, formatBytes(byteSize), formatTime(createdAt), `${checksum.slice(0, CHECKSUM_SHOWN)}…`];
      });
      context.printTable(found, ['NAME', 'SIZE', 'UPLOADED (UTC)', 'SHA-256'], rows);
    })
    .examples(['latchkey files list --app "Difference Engine"', 'List its files']);
  addTransfers(files);
  addChanges(files);
}

function addTransfers(files: CliCommand): void {
  files
    .command('upload')
    .addOption(appOption())
    .description('Upload files, one after the other, and print their SHA-256 as sha256sum does')
    .argument('<path...>', 'files; their names on the server are those without the folder')
    .option('--name <name>', `name on the server, for a single file: ${FILE_NAME_LENGTH}`)
    .option('--replace', 'replace files of the same name; those with the same content are left as they are')
    .run(uploadFiles)
    .examples(
      ['latchkey files upload dist/*.zip --app "Difference Engine"', 'Upload several files'],
      ['latchkey files upload dist/* --app "Difference Engine" --replace', 'Upload what is new or has changed'],
    );
  files
    .command('download')
    .addOption(appOption())
    .description('Download a file, and compare its SHA-256 with that of the upload')
    .argument('<file>', 'name or id of the file')
    .option('-o, --output <path>', 'where to write it, - for standard output; the name of the file in this folder unless set')
    .option('--force', 'replace a file that exists')
    .run(async (context, wanted: string, options: DownloadOptions) => {
      const { client, id: applicationId } = await openApplication(context, options.app);
      const { name: _, ...file } = await findFile(client, applicationId, wanted);
      const path = await downloadFile(context, client, applicationId, file, options);
      if (path !== '-') context.print({ ...file, path }, `${file.checksum}  ${path}`);
    })
    .examples(['latchkey files download setup.exe --app "Difference Engine"', 'Download into this folder']);
}

function addChanges(files: CliCommand): void {
  files
    .command('rename')
    .addOption(appOption())
    .description('Give a file another name')
    .argument('<file>', 'name or id of the file')
    .argument('<name>', `new name, ${FILE_NAME_LENGTH}`)
    .run(async (context, wanted: string, name: string, { app }: AppOption) => {
      const { client, id: applicationId } = await openApplication(context, app);
      const { id, name: former } = await resolveFile(client, applicationId, wanted);
      await client.files.rename(applicationId, id, name);
      context.print({ id, displayName: name }, `Renamed ${former} to ${name}.`);
    })
    .examples(['latchkey files rename setup.exe setup-1.4.exe --app "Difference Engine"', 'Rename a file']);
  files
    .command('delete')
    .addOption(appOption())
    .description('Delete files')
    .argument('<file...>', 'names or ids of the files')
    .addOption(yesOption())
    .run(async (context, wanted: string[], { app }: AppOption) => {
      const { client, id: applicationId } = await openApplication(context, app);
      const found = [];
      for (const name of wanted) found.push(await resolveFile(client, applicationId, name));
      const names = found.map(({ name }) => name).join(', ');
      await context.confirm(`Delete ${names}? Downloads of ${found.length === 1 ? 'it' : 'them'} stop working.`);
      for (const { id } of found) await client.files.delete(applicationId, id);
      context.print(found, `Deleted ${names}.`);
    })
    .examples(['latchkey files delete setup.exe --app "Difference Engine" --yes', 'Delete without a question']);
}
