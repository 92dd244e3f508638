import { Argument, Command } from 'commander';
import { COMPLETION_SCRIPTS, findCandidates } from '../completion/completion.ts';
import { examples, withContext } from '../program/command.ts';
import type { Io } from '../program/io.ts';

export function completionCommand(io: Io): Command {
  const completion = new Command('completion')
    .description('Print the completion script of a shell')
    .addArgument(new Argument('<shell>').choices(Object.keys(COMPLETION_SCRIPTS)))
    .action(withContext(io, (_context, shell: string) => void io.stdout.write(COMPLETION_SCRIPTS[shell] ?? '')));
  examples(completion, [
    ['eval "$(latchkey completion bash)"', 'Complete in this bash; add the line to ~/.bashrc to keep it'],
    ['eval "$(latchkey completion zsh)"', 'The same for zsh, after compinit in ~/.zshrc'],
    ['latchkey completion fish > ~/.config/fish/completions/latchkey.fish', 'The same for fish'],
  ]);
  return completion;
}

/** Command that the completion scripts call. */
export function completeCommand(io: Io, program: Command): Command {
  return new Command('complete').argument('[words...]').action(
    withContext(io, (_context, words: readonly string[]) => {
      for (const candidate of findCandidates(program, words)) io.stdout.write(`${candidate}\n`);
    }),
  );
}
