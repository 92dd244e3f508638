/**
 * Gives the memory of a chunk back at once, where it has it to itself. What Node reads from a connection comes in chunks of 64 KiB outside of the
 * heap, for which V8 otherwise collects the whole heap again and again: half of what an upload costs.
 *
 * @param chunk whose bytes nobody needs any more, nor is writing anywhere
 */
export function releaseBytes({ buffer, byteLength }: Uint8Array): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength) buffer.transfer(0);
}
