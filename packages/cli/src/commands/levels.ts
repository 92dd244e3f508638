import { describeLength } from '@latchkey/contract/lengths';
import { LICENSE_LEVEL } from '@latchkey/contract/license-level';
import { Command } from 'commander';
import { resolveApplication } from '../lookup/resolve.ts';
import { examples, withContext } from '../program/command.ts';
import type { Io } from '../program/io.ts';

export function levelsCommand(io: Io): Command {
  const levels = new Command('levels').description('Read and replace license levels');
  const get = levels
    .command('get')
    .description('Print the levels in their order, one a line')
    .argument('<app>', 'name or id of the application')
    .action(
      withContext(io, async (context, app: string) => {
        const client = await context.client();
        const list = await client.levels.get((await resolveApplication(client, app)).id);
        context.print(list, list.join('\n'));
        if (list.length === 0) context.note(`No levels. Set them: latchkey levels set "${app}" <level...>`);
      }),
    );
  examples(get, [['latchkey levels get "Difference Engine"', 'Print them']]);
  const set = levels
    .command('set')
    .description('Replace the whole list of levels')
    .argument('<app>', 'name or id of the application')
    .argument('<level...>', `levels in their order, ${describeLength(LICENSE_LEVEL)} each`)
    .action(
      withContext(io, async (context, app: string, list: string[]) => {
        const client = await context.client();
        const { id, name } = await resolveApplication(client, app);
        await client.levels.set(id, list);
        context.print(list, `Set ${list.length === 1 ? '1 level' : `${list.length} levels`} of ${name}: ${list.join(', ')}.`);
      }),
    );
  examples(set, [['latchkey levels set "Difference Engine" basic pro', 'Two levels, "basic" before "pro"']]);
  return levels;
}
