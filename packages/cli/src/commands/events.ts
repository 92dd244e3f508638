import { EVENT_WAIT_SECONDS_MAX } from '@latchkey/contract/cloud-event';
import { Command, InvalidArgumentError, Option } from 'commander';
import { resolveApplication } from '../lookup/resolve.ts';
import { examples, withContext } from '../program/command.ts';
import type { Io } from '../program/io.ts';
import { printEvent } from './listen.ts';

interface EventsOptions {
  readonly after?: string;
  readonly wait?: number;
}

export function eventsCommand(io: Io): Command {
  const command = new Command('events')
    .summary('Pull stored live events of an application')
    .description('Pull stored live events of an application, oldest first, up to 100, and print where the next ones begin')
    .argument('<app>', 'name or id of the application')
    .option('--after <position>', 'position that the last call printed; without it, from the oldest')
    .addOption(new Option('--wait <seconds>', 'wait for an event where there is none, up to 25').argParser(readSeconds))
    .action(
      withContext(io, async (context, app: string, { after, wait }: EventsOptions) => {
        const client = await context.client();
        const { id } = await resolveApplication(client, app);
        const page = await client.applications.pullEvents(id, { after, waitSeconds: wait });
        if (page.gap) context.note('Some events are no longer stored, or the log was set back: read the settings.');
        for (const event of page.events) printEvent(context, event);
        context.note(`Next: --after ${page.next}`);
      }),
    );
  return examples(command, [
    ['latchkey events "Difference Engine" --after b1946ac92492d234:7 --wait 20', 'Events after a position, or the next one'],
  ]);
}

function readSeconds(text: string): number {
  if (/^\d{1,2}$/.test(text) && Number(text) <= EVENT_WAIT_SECONDS_MAX) return Number(text);
  throw new InvalidArgumentError(`It must be 0 to ${EVENT_WAIT_SECONDS_MAX}.`);
}
