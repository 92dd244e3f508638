import { type Latchkey, LatchkeyError } from '@latchkey/client';

/** @throws LatchkeyError if the server rejects the key itself, whichever scopes it has */
export async function checkKey(client: Latchkey): Promise<void> {
  try {
    await client.limits.get();
  } catch (err) {
    if (!(err instanceof LatchkeyError) || err.code !== 'insufficient_scope') throw err;
  }
}
