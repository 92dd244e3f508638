import { stripVTControlCharacters } from 'node:util';
import { type Command, Help, type HelpConfiguration } from 'commander';
import type { Colors } from '../program/context.ts';

/** Help with the commands before the options: a newcomer looks for what can be done. */
export function helpConfiguration({ bold }: Colors): HelpConfiguration {
  return {
    showGlobalOptions: true,
    subcommandTerm: (command) => command.name(),
    styleTitle: bold,
    formatHelp: (command: Command, helper: Help) => {
      const sections = Help.prototype.formatHelp.call(helper, command, helper).trimEnd().split('\n\n');
      const isOptions = (section: string) => /^(Global )?Options:/.test(stripVTControlCharacters(section));
      const ordered = [...sections.filter((section) => !isOptions(section)), ...sections.filter(isOptions)];
      return `${ordered.join('\n\n')}\n`;
    },
  };
}
