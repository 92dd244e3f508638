import { runAccountsProcess } from '@latchkey/identity/operator/accounts-process';
import { openAccountsTarget } from './accounts.ts';

await runAccountsProcess({
  command: 'npm run accounts --',
  args: process.argv.slice(2),
  open: () => openAccountsTarget(process.env, (line) => process.stderr.write(`${line}\n`)),
});
