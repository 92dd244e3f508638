import { EVENT_WAIT_SECONDS_MAX } from '@latchkey/contract/cloud-event';
import { openApplication } from '../lookup/resolve.ts';
import { APP, type CliCommand, wholeNumber } from '../program/command.ts';
import { printEvent } from './listen.ts';

interface EventsOptions {
  readonly after?: string;
  readonly wait?: number;
}

export function addEvents(program: CliCommand): void {
  program
    .command('events')
    .summary('Pull stored live events of an application')
    .description('Pull stored live events of an application, oldest first, up to 100, and print where the next ones begin')
    .argument(...APP)
    .option('--after <position>', 'position that the last call printed; without it, from the oldest')
    .option('--wait <seconds>', 'longest wait for the next event, up to 25', wholeNumber(0, EVENT_WAIT_SECONDS_MAX))
    .run(async (context, app: string, { after, wait }: EventsOptions) => {
      const { client, id } = await openApplication(context, app);
      const page = await client.applications.pullEvents(id, { after, waitSeconds: wait });
      if (page.gap) context.note('Some events are no longer stored, or the log was set back: read the settings.');
      for (const event of page.events) printEvent(context, event);
      context.note(`Next: --after ${page.next}`);
    })
    .examples([
      'latchkey events "Difference Engine" --after b1946ac92492d234:7 --wait 20',
      'Events after a position, or the next one',
    ]);
}
