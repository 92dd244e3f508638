import { Latchkey } from '@latchkey/client';
import { Argument } from 'commander';
import { COMPLETION_SCRIPTS, findCandidates } from '../completion/completion.ts';
import { printable } from '../output/text.ts';
import type { CliCommand } from '../program/command.ts';
import type { Context } from '../program/context.ts';

/** A person waits at the prompt. */
const TIMEOUT_MS = 2_000;

export function addCompletion(program: CliCommand): void {
  program
    .command('completion')
    .description('Print the completion script of a shell')
    .addArgument(new Argument('<shell>').choices(Object.keys(COMPLETION_SCRIPTS)))
    .run((context, shell: string) => void context.io.stdout.write(COMPLETION_SCRIPTS[shell] ?? ''))
    .examples(
      ['eval "$(latchkey completion bash)"', 'Complete in this bash; add the line to ~/.bashrc to keep it'],
      ['eval "$(latchkey completion zsh)"', 'The same for zsh, after compinit in ~/.zshrc'],
      ['latchkey completion fish > ~/.config/fish/completions/latchkey.fish', 'The same for fish'],
    );
  // The scripts call it.
  program
    .command('complete', { hidden: true })
    .argument('[words...]')
    .run(async (context, words: readonly string[]) => {
      const candidates = await findCandidates(program, words, () => listApplications(context));
      for (const candidate of candidates) context.io.stdout.write(`${candidate}\n`);
    });
}

/** Names of applications; none without a server that responds soon. */
async function listApplications(context: Context): Promise<readonly string[]> {
  try {
    const { url, key } = await context.readConnection();
    const client = new Latchkey({ url, key, retries: 0, timeoutMs: TIMEOUT_MS });
    const names = (await client.applications.list()).map(({ name }) => name);
    // A terminal would interpret control characters.
    return [...new Set(names)].filter((name) => printable(name) === name);
  } catch {
    return [];
  }
}
