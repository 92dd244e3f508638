import { runCheckCommand } from '@latchkey/files/storage/reconciler/check-command';
import { openCheckTarget } from './check-files.ts';

await runCheckCommand({
  command: 'npm run check-files --',
  args: process.argv.slice(2),
  open: () => openCheckTarget(process.env, (line) => process.stderr.write(`${line}\n`)),
});
