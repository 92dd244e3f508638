import { confirm, isCancel, password, text, updateSettings } from '@clack/prompts';
import { CliError, missingOption } from '../program/errors.ts';
import type { Io } from '../program/io.ts';
import { printable } from './text.ts';

// The library leaves a question without an answer at Ctrl-D, and the process would end silently.
updateSettings({ aliases: { '\u0004': 'cancel' } });

/** A question, and the option that answers it where there is no terminal. */
export interface Question {
  readonly message: string;
  readonly option: string;
  readonly what: string;
}

/** Asks on standard error, so that standard output holds results only. */
export function createPrompts({ stdin, stderr }: Io) {
  const isTerminal = Boolean(stdin.isTTY && stderr.isTTY);
  // A serial line says that it has no columns: the library would break lines at each character.
  if (stderr.columns === 0) stderr.columns = 80;
  const streams = { input: stdin, output: stderr };
  const ask = async <T>({ option, what }: Question, prompt: () => Promise<T | symbol>): Promise<T> => {
    if (!isTerminal) throw missingOption(option, what);
    const answer = await prompt();
    if (isCancel(answer)) throw new CliError('failed', 'Cancelled. Nothing was changed.');
    return answer as T;
  };
  const validate = (value: string | undefined) => (value?.trim() ? undefined : 'Enter a value.');
  return {
    isTerminal,
    text: async (question: Question, defaultValue?: string): Promise<string> => {
      const options = defaultValue === undefined ? { validate } : { placeholder: printable(defaultValue), defaultValue };
      return (await ask<string>(question, () => text({ message: question.message, ...options, ...streams }))).trim();
    },
    password: (question: Question) => ask<string>(question, () => password({ message: question.message, validate, ...streams })),
    confirm: (question: Question) =>
      ask<boolean>(question, () => confirm({ message: question.message, initialValue: false, ...streams })),
  };
}
