/** The queues that events go to, each with the types of event that it wants, as the log's rows have them. */
export const CONSUMERS: Readonly<Record<string, ReadonlySet<string>>> = {
  files: new Set(['deleted']),
};

/** The names of all queues. */
export const QUEUES: readonly string[] = Object.keys(CONSUMERS);

/** Whether any queue wants events of a type. One that none wants is written as delivered, and costs nothing more. */
export function isWanted(type: string): boolean {
  return QUEUES.some((queue) => CONSUMERS[queue]?.has(type));
}
