/** Bytes in a MiB. */
export const MIB = 1024 * 1024;

/** What a file takes of its account's allowance: its size in whole MiB, rounded down, at least one (specification 8). */
export function chargeMib(byteSize: number): number {
  return Math.max(1, Math.floor(byteSize / MIB));
}
