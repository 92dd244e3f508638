import type { ServerResponse } from 'node:http';

/**
 * Waits until a response is the next on its connection: what is opened for a pipelined request would be held
 * for as long as the responses before it take.
 *
 * @returns false if the connection is gone
 */
export async function answerTurn(res: ServerResponse): Promise<boolean> {
  if (!res.destroyed && res.socket === null) {
    await new Promise<void>((resolve) => {
      // A response gets its socket when its turn comes.
      res.once('socket', () => resolve()).once('close', () => resolve());
    });
  }
  return !res.destroyed;
}
