import type { IncomingMessage } from 'node:http';

/** How often a request gives a header. Of most, Node keeps the first in silence. */
export function countHeader({ rawHeaders }: IncomingMessage, lowerCaseName: string): number {
  let count = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] as string;
    if (name.length === lowerCaseName.length && name.toLowerCase() === lowerCaseName) count += 1;
  }
  return count;
}
