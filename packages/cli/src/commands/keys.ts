import { Argument } from 'commander';
import { findApplication, openApplication, resolveApplication } from '../lookup/resolve.ts';
import { formatTime } from '../output/text.ts';
import { APP, type CliCommand, overlapOption, yesOption } from '../program/command.ts';

type KeyType = 'socket' | 'http';

interface RotateOptions {
  /** Seconds. */
  readonly overlap?: number;
  readonly endPrevious?: boolean;
}

/** @param when the moment of the end, in words */
const consequence = (type: KeyType, when: string) =>
  `The current key stops working ${when}${type === 'socket' ? ', and clients that are connected with it are disconnected' : ''}.`;

export function addKeys(program: CliCommand): void {
  const keys = program.group('keys').description('Rotate runtime keys');
  const typeArgument = () => new Argument('<type>', 'which key').choices(['socket', 'http']);
  keys
    .command('rotate')
    .description('Replace a runtime key; the current one stops working immediately, or after an overlap')
    .argument(...APP)
    .addArgument(typeArgument())
    .addOption(overlapOption())
    .option('--end-previous', 'end the overlap of an earlier rotation now')
    .addOption(yesOption())
    .run(async (context, app: string, type: KeyType, { overlap = 0, endPrevious }: RotateOptions) => {
      const client = await context.client();
      const { id, name } = await (context.options.yes ? resolveApplication : findApplication)(client, app);
      const when = overlap > 0 ? `at ${formatTime(new Date(Date.now() + overlap * 1_000).toISOString())}` : 'immediately';
      await context.confirm(`Rotate the ${type} key of ${name}? ${consequence(type, when)}`);
      await client.keys.rotate(id, type, { overlapSeconds: overlap, endPrevious });
      context.print({ id, type }, `Rotated the ${type} key of ${name}. Print it: latchkey apps show "${name}" --show-keys`);
    })
    .examples(
      ['latchkey keys rotate "Difference Engine" socket', 'Replace the key of its live clients'],
      ['latchkey keys rotate "Difference Engine" http --overlap 24h', 'The old key works for another day'],
    );
  keys
    .command('end-overlap')
    .description('End the overlap of a rotation; the old key stops working immediately')
    .argument(...APP)
    .addArgument(typeArgument())
    .run(async (context, app: string, type: KeyType) => {
      const { client, id, name } = await openApplication(context, app);
      await client.keys.endOverlap(id, type);
      context.print({ id, type }, `The old ${type} key of ${name} stopped working.`);
    })
    .examples(['latchkey keys end-overlap "Difference Engine" http', 'All copies have the new key']);
}
