import { createLogger, type Logger } from '../log/logger.ts';

/** A line as it was written. */
export type LogLine = Readonly<Record<string, unknown>> & { readonly msg: string };

/** A logger that stores its lines. */
export function memoryLogger() {
  const lines: LogLine[] = [];
  const write = (text: string) => void lines.push(JSON.parse(text) as LogLine);
  const logger: Logger = createLogger('test', 'debug', { write });
  return { logger, lines, messages: () => lines.map(({ msg }) => msg) };
}
