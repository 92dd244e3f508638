import { Argument, Command } from 'commander';
import { findApplication, resolveApplication } from '../lookup/resolve.ts';
import { formatTime } from '../output/text.ts';
import { examples, overlapOption, withContext, yesOption } from '../program/command.ts';
import type { Io } from '../program/io.ts';

type KeyType = 'socket' | 'http';

interface RotateOptions {
  /** Seconds. */
  readonly overlap?: number;
  readonly endPrevious?: boolean;
}

/** @param when the moment of the end, in words */
const consequence = (type: KeyType, when: string) =>
  `The current key stops working ${when}${type === 'socket' ? ', and clients that are connected with it are disconnected' : ''}.`;

const addKeyArguments = (command: Command) =>
  command
    .argument('<app>', 'name or id of the application')
    .addArgument(new Argument('<type>', 'which key').choices(['socket', 'http']));

export function keysCommand(io: Io): Command {
  const keys = new Command('keys').description('Rotate runtime keys');
  const rotate = addKeyArguments(
    keys.command('rotate').description('Replace a runtime key; the current one stops working immediately, or after an overlap'),
  )
    .addOption(overlapOption())
    .option('--end-previous', 'end the overlap of an earlier rotation now')
    .addOption(yesOption())
    .action(
      withContext(io, async (context, app: string, type: KeyType, { overlap = 0, endPrevious }: RotateOptions) => {
        const client = await context.client();
        const { id, name } = await (context.options.yes ? resolveApplication : findApplication)(client, app);
        const when = overlap > 0 ? `at ${formatTime(new Date(Date.now() + overlap * 1_000).toISOString())}` : 'immediately';
        await context.confirm(`Rotate the ${type} key of ${name}? ${consequence(type, when)}`);
        await client.keys.rotate(id, type, { overlapSeconds: overlap, endPrevious });
        context.print({ id, type }, `Rotated the ${type} key of ${name}. Print it: latchkey apps show "${name}" --show-keys`);
      }),
    );
  examples(rotate, [
    ['latchkey keys rotate "Difference Engine" socket', 'Replace the key of its live clients'],
    ['latchkey keys rotate "Difference Engine" http --overlap 24h', 'The old key works for another day'],
  ]);
  const end = addKeyArguments(
    keys.command('end-overlap').description('End the overlap of a rotation; the old key stops working immediately'),
  ).action(
    withContext(io, async (context, app: string, type: KeyType) => {
      const client = await context.client();
      const { id, name } = await resolveApplication(client, app);
      await client.keys.endOverlap(id, type);
      context.print({ id, type }, `The old ${type} key of ${name} stopped working.`);
    }),
  );
  examples(end, [['latchkey keys end-overlap "Difference Engine" http', 'All copies have the new key']]);
  return keys;
}
