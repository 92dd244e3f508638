import type { Argument, Command, Option } from 'commander';
import type { CliCommand } from '../program/command.ts';

/** The scripts ask the program itself, so that they never go stale. No candidate means a path. */
export const COMPLETION_SCRIPTS: Readonly<Record<string, string>> = {
  bash: `_latchkey() {
  local found
  COMPREPLY=()
  while IFS= read -r found; do
    # Names may have spaces; within quotes they stay as they are.
    [[ \${COMP_WORDS[COMP_CWORD]} == [\\"\\']* ]] || printf -v found %q "$found"
    COMPREPLY+=("$found")
  done < <(latchkey complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f1)
}
complete -o default -F _latchkey latchkey
`,
  zsh: `#compdef latchkey
_latchkey() {
  local -a found=(\${(f)"$(latchkey complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)"})
  found=("\${(@)found//$'\\t'/:}")
  if (( $#found )); then _describe command found; else _files; fi
}
compdef _latchkey latchkey
`,
  fish: `function __latchkey
  set -l found (latchkey complete -- (commandline -opc)[2..] (commandline -ct) 2>/dev/null)
  if set -q found[1]
    printf '%s\\n' $found
  else
    __fish_complete_path (commandline -ct)
  end
end
complete -c latchkey -f -a '(__latchkey)'
`,
};

/**
 * @param words after the program's name, up to the one at the cursor, which may be empty
 * @param listApplications reads the names of applications, for arguments and options that take one
 */
export async function findCandidates(
  program: Command,
  words: readonly string[],
  listApplications: () => Promise<readonly string[]> = async () => [],
): Promise<readonly string[]> {
  const current = words.at(-1) ?? '';
  let command = program;
  let positionals = 0;
  let optionOf: Option | undefined;
  for (const word of words.slice(0, -1)) {
    const option = word.startsWith('-') ? findOption(command, word) : undefined;
    if (optionOf) optionOf = undefined;
    else if (word.startsWith('-')) optionOf = option && (option.required || option.optional) ? option : undefined;
    else {
      const child = visibleCommands(command).find((candidate) => candidate.name() === word);
      if (child) [command, positionals] = [child, 0];
      else positionals += 1;
    }
  }
  const isApplication = optionOf ? optionOf.long === '--app' : takesApplication(command, positionals, current);
  if (!isApplication)
    return candidatesAt(command, optionOf, positionals, current).filter((candidate) => candidate.startsWith(current));
  // The shell gives the word as it was typed: with its quote, or with backslashes.
  const typed = current.replace(/^["']/, '').replace(/\\(.)/g, '$1');
  return (await listApplications()).filter((name) => name.startsWith(typed));
}

function takesApplication(command: Command, positionals: number, current: string): boolean {
  return !current.startsWith('-') && command.registeredArguments[positionals]?.name() === 'app';
}

function candidatesAt(command: Command, optionOf: Option | undefined, positionals: number, current: string): readonly string[] {
  if (optionOf) return optionOf.argChoices ?? [];
  if (current.startsWith('-')) {
    const options = lineage(command).flatMap((ancestor) => ancestor.options.filter((option) => !option.hidden));
    return options.map((option) => `${option.long}\t${option.description}`);
  }
  const children = visibleCommands(command).map((child) => `${child.name()}\t${child.summary() || child.description()}`);
  if (children.length > 0) return children;
  const argument: Argument | undefined = command.registeredArguments[positionals];
  return argument?.argChoices ?? [];
}

export function visibleCommands(command: Command): readonly CliCommand[] {
  return command.createHelp().visibleCommands(command) as CliCommand[];
}

const lineage = (command: Command): readonly Command[] => [command, ...(command.parent ? lineage(command.parent) : [])];

function findOption(command: Command, flag: string): Option | undefined {
  const all = lineage(command).flatMap((ancestor) => ancestor.options);
  return all.find((option) => option.short === flag || option.long === flag);
}
