/** True if the host of a URL is this machine. */
export const isLoopback = (hostname: string): boolean => /^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname);

/**
 * Default address to listen on. Without a public URL, or with one of this machine, others have
 * no way in.
 */
export function defaultHost(publicUrl = 'http://localhost'): string {
  const { hostname } = new URL(publicUrl);
  if (!isLoopback(hostname)) return '0.0.0.0';
  return hostname === 'localhost' ? '127.0.0.1' : hostname.replace(/[[\]]/g, '');
}
