import type { ServerResponse } from 'node:http';

/**
 * Waits until an answer is the next to be sent on its connection. Node hands on requests that a client sends without waiting for the answers
 * before; what would be opened for one whose turn has not come is held for as long as those before it take.
 *
 * @returns false where the connection is gone
 */
export async function answerTurn(res: ServerResponse): Promise<boolean> {
  if (!res.destroyed && res.socket === null) {
    await new Promise<void>((resolve) => {
      // An answer is given its socket when its turn comes.
      res.once('socket', () => resolve()).once('close', () => resolve());
    });
  }
  return !res.destroyed;
}
