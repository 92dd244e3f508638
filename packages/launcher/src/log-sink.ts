import { join } from 'node:path';
import { isDiskFull } from '@latchkey/embedded/process/disk-full';
import openRollingFile from 'pino-roll';

const FILE_SIZE = '20m';
const OLD_FILES_MAX = 4;
/** pino puts the level first. */
const WARNING = /^\{"level":[456]0,/;

/**
 * Opens the log: JSON lines in `<dir>/latchkey.<number>.log`, five files of 20 MB at most.
 *
 * @param onProblem gets warnings and errors in readable form
 * @param onDiskFull called each time that a full disk rejected lines. They are written once there
 *   is space, up to a limit
 * @param fileSize where the next file begins, like `20m`
 */
export async function openLogSink(
  dir: string,
  onProblem: (line: string) => void,
  onDiskFull: () => void = () => {},
  fileSize = FILE_SIZE,
) {
  const file = await openRollingFile({
    file: join(dir, 'latchkey'),
    extension: '.log',
    size: fileSize,
    limit: { count: OLD_FILES_MAX, removeOtherLogFiles: true },
    mkdir: true,
    sync: false,
    minLength: 4_096,
    periodicFlush: 500,
    // On a full disk, lines beyond this limit are dropped before memory fills.
    maxLength: 16 * 1024 * 1024,
  });
  let isBroken = false;
  file.on('error', (err: Error) => {
    // The library tries again with the next lines.
    if (isDiskFull(err)) onDiskFull();
    else if (!isBroken) onProblem(`The log can't be written: ${err.message}`);
    isBroken = true;
  });
  file.on('write', () => {
    isBroken = false;
  });
  return {
    dir,
    /** Takes one line of JSON, as pino writes it. */
    write(line: string) {
      file.write(line.endsWith('\n') ? line : `${line}\n`);
      if (WARNING.test(line)) onProblem(toReadable(line));
    },
    writeText: (service: string, text: string) =>
      file.write(`${JSON.stringify({ level: 30, time: Date.now(), service, msg: text })}\n`),
    close: () =>
      new Promise<void>((resolve) => {
        if (isBroken) return resolve();
        file.once('close', resolve);
        file.once('error', () => resolve());
        file.end();
      }),
  };
}

export function toReadable(line: string): string {
  try {
    const { service, msg, err } = JSON.parse(line) as { service?: string; msg?: string; err?: { message?: string } };
    const reason = err?.message ? ` (${err.message.split('\n')[0]})` : '';
    return `${service ?? 'latchkey'}: ${msg ?? ''}${reason}`;
  } catch {
    return line.trim();
  }
}
