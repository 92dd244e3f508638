import { spawn } from 'node:child_process';

/**
 * Waits on a pipe that only our process holds open. When we end without a release (kill -9, a
 * crash), the pipe closes, and the guard ends the server and removes what was temporary.
 */
const SCRIPT = `
cat >/dev/null
kill -s "$2" "$1" 2>/dev/null
kill -s CONT "$1" 2>/dev/null
tries=0
while kill -0 "$1" 2>/dev/null && [ "$tries" -lt 300 ]; do sleep 0.1; tries=$((tries + 1)); done
if [ -n "$3" ]; then kill -s KILL "$1" 2>/dev/null; rm -rf -- "$3"; fi
`;

/**
 * Ends a server when this process ends without stopping it.
 *
 * @param signal makes the server stop in an orderly way
 * @param removeDir a folder to remove afterwards
 * @returns releases the guard. Call it before the server is stopped: its pid is reused after that.
 */
export function guardOrphan(pid: number, signal: NodeJS.Signals, removeDir = ''): () => void {
  const args = ['-c', SCRIPT, 'latchkey-guard', String(pid), signal.slice('SIG'.length), removeDir];
  // In a separate session, it gets no Ctrl-C from the terminal.
  const guard = spawn('/bin/sh', args, { detached: true, stdio: ['pipe', 'ignore', 'ignore'], cwd: '/' });
  // Without a guard, the next start still finds and ends a leftover.
  guard.on('error', () => {});
  guard.stdin.on('error', () => {});
  guard.unref();
  (guard.stdin as unknown as { unref?: () => void }).unref?.();
  return () => {
    if (guard.pid === undefined || guard.exitCode !== null || guard.signalCode !== null) return;
    try {
      process.kill(-guard.pid, 'SIGKILL');
    } catch {
      // It has ended.
    }
  };
}
