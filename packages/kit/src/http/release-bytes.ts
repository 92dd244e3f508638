/**
 * Frees the memory of a chunk immediately, if nothing else shares it. V8 would collect the whole heap again
 * and again for the 64 KiB chunks that Node reads: half of what an upload costs.
 *
 * @param chunk whose bytes are not used or written any more
 */
export function releaseBytes({ buffer, byteLength }: Uint8Array): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength) buffer.transfer(0);
}
