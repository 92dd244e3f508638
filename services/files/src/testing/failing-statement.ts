import pg from 'pg';

/** Whether a statement fails before the database has seen it, or after it has carried it out. */
export type FailingMoment = 'before' | 'after';

/**
 * Runs something and makes one of the statements fail that are sent meanwhile, by whomever in this process, as a connection does that breaks at
 * that moment. The statements that undo it go through.
 *
 * @param position of the statement, from 0
 * @returns whether there was such a statement
 */
export async function whileFailingAt(position: number, moment: FailingMoment, run: () => Promise<unknown>): Promise<boolean> {
  let sent = 0;
  const { query } = pg.Client.prototype;
  pg.Client.prototype.query = async function record(this: pg.Client) {
    const isFailing = sent === position;
    sent += 1;
    if (isFailing && moment === 'before') throw new Error('broken by the test');
    // biome-ignore lint/complexity/noArguments: pg has many overloads, and all go through untouched.
    const result = await Reflect.apply(query, this, arguments);
    if (isFailing) throw new Error('broken by the test');
    return result;
  } as unknown as typeof query;
  try {
    await run().catch((err: Error) => {
      if (err.message !== 'broken by the test') throw err;
    });
  } finally {
    pg.Client.prototype.query = query;
  }
  return sent > position;
}
