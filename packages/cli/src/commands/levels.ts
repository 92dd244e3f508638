import { describeLength } from '@latchkey/contract/lengths';
import { LICENSE_LEVEL } from '@latchkey/contract/license-level';
import { openApplication } from '../lookup/resolve.ts';
import { APP, type CliCommand } from '../program/command.ts';

export function addLevels(program: CliCommand): void {
  const levels = program.group('levels').description('Read and replace license levels');
  levels
    .command('get')
    .description('Print the levels in their order, one a line')
    .argument(...APP)
    .run(async (context, app: string) => {
      const { client, id } = await openApplication(context, app);
      const list = await client.levels.get(id);
      context.print(list, list.join('\n'));
      if (list.length === 0) context.note(`No levels. Set them: latchkey levels set "${app}" <level...>`);
    })
    .examples(['latchkey levels get "Difference Engine"', 'Print them']);
  levels
    .command('set')
    .description('Replace the whole list of levels')
    .argument(...APP)
    .argument('<level...>', `levels in their order, ${describeLength(LICENSE_LEVEL)} each`)
    .run(async (context, app: string, list: string[]) => {
      const { client, id, name } = await openApplication(context, app);
      await client.levels.set(id, list);
      context.print(list, `Set ${list.length === 1 ? '1 level' : `${list.length} levels`} of ${name}: ${list.join(', ')}.`);
    })
    .examples(['latchkey levels set "Difference Engine" basic pro', 'Two levels, "basic" before "pro"']);
}
