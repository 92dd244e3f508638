import { spawn } from 'node:child_process';

/**
 * Waits on a pipe that only our process holds open. When we end without having released the guard (kill -9, a
 * crash), the pipe closes, and the guard ends the server and removes what was temporary, as nobody else is left to.
 */
const SCRIPT = `
cat >/dev/null
kill -s "$2" "$1" 2>/dev/null
tries=0
while kill -0 "$1" 2>/dev/null && [ "$tries" -lt 300 ]; do sleep 0.1; tries=$((tries + 1)); done
if [ -n "$3" ]; then kill -s KILL "$1" 2>/dev/null; rm -rf -- "$3"; fi
`;

export interface OrphanGuardOptions {
  /** The process to end. */
  pid: number;
  /** The signal that makes it stop in an orderly way. */
  signal: NodeJS.Signals;
  /** A folder to remove afterwards. */
  removeDir?: string | undefined;
}

/**
 * Makes sure that a server does not outlive this process.
 *
 * @returns a function that releases the guard; call it before the server is stopped, as its pid is free for others then.
 */
export function guardOrphan({ pid, signal, removeDir }: OrphanGuardOptions): () => void {
  const guard = spawn(
    '/bin/sh',
    ['-c', SCRIPT, 'latchkey-guard', String(pid), signal.replace(/^SIG/, ''), removeDir ?? ''],
    // A session of its own: a Ctrl-C at the terminal is not for it.
    { detached: true, stdio: ['pipe', 'ignore', 'ignore'], cwd: '/' },
  );
  // Without a guard a leftover is still found and ended at the next start.
  guard.on('error', () => {});
  guard.stdin.on('error', () => {});
  guard.unref();
  (guard.stdin as unknown as { unref?: () => void }).unref?.();
  return () => {
    if (guard.pid === undefined || guard.exitCode !== null || guard.signalCode !== null) return;
    try {
      process.kill(-guard.pid, 'SIGKILL');
    } catch {
      // Gone already.
    }
  };
}
