import { runCheckProcess } from '@latchkey/files/storage/reconciler/check-process';
import { openCheckTarget } from './check-files.ts';

await runCheckProcess({
  command: 'npm run check-files --',
  args: process.argv.slice(2),
  open: () => openCheckTarget(process.env, (line) => process.stderr.write(`${line}\n`)),
});
