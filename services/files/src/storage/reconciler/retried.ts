import { setTimeout as delay } from 'node:timers/promises';
import { isDatabaseUnavailable } from '@latchkey/kit/database/database';

const TRIES = 5;
const PAUSE_MS = 1_000;

/** Asks the database again where it could not answer, a few times: a check that takes hours should outlive a restart. */
export async function retried<T>(ask: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await ask();
    } catch (err) {
      if (tries === TRIES || !isDatabaseUnavailable(err)) throw err;
      await delay(PAUSE_MS);
    }
  }
}
