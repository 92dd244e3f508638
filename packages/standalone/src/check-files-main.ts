import { runCheckCommand } from '@latchkey/files/storage/reconciler/check-command';
import { openCheckTarget } from './check-files.ts';

const writeNote = (line: string) => process.stderr.write(`${line}\n`);
await runCheckCommand('npm run check-files --', process.argv.slice(2), () => openCheckTarget(process.env, writeNote));
