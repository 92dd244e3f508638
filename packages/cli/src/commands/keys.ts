import { Argument, Command } from 'commander';
import { findApplication, resolveApplication } from '../lookup/resolve.ts';
import { examples, withContext, yesOption } from '../program/command.ts';
import type { Io } from '../program/io.ts';

const CONSEQUENCES = {
  socket: 'The current key stops working immediately, and connected clients are disconnected.',
  http: 'The current key stops working immediately.',
};

export function keysCommand(io: Io): Command {
  const keys = new Command('keys').description('Rotate runtime keys');
  const rotate = keys
    .command('rotate')
    .description('Replace a runtime key; the current one stops working immediately')
    .argument('<app>', 'name or id of the application')
    .addArgument(new Argument('<type>', 'which key').choices(['socket', 'http']))
    .addOption(yesOption())
    .action(
      withContext(io, async (context, app: string, type: 'socket' | 'http') => {
        const client = await context.client();
        const { id, name } = await (context.options.yes ? resolveApplication : findApplication)(client, app);
        await context.confirm(`Rotate the ${type} key of ${name}? ${CONSEQUENCES[type]}`);
        await client.keys.rotate(id, type);
        context.print({ id, type }, `Rotated the ${type} key of ${name}. Print it: latchkey apps show "${name}" --show-keys`);
      }),
    );
  examples(rotate, [['latchkey keys rotate "Difference Engine" socket', 'Replace the key of its live clients']]);
  return keys;
}
