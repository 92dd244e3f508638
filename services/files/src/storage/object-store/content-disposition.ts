/**
 * The `Content-Disposition` that makes a browser save bytes under a name (RFC 6266). A name with anything beyond printable ASCII, which no file of
 * this service has, is given in the extended form of RFC 8187 only.
 */
export function attachment(fileName: string): string {
  if (/^[\x20-\x7e]*$/.test(fileName)) return `attachment; filename="${fileName.replace(/[\\"]/g, '\\$&')}"`;
  const percentEncode = (character: string) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`;
  return `attachment; filename*=UTF-8''${encodeURIComponent(fileName.toWellFormed()).replace(/['()*]/g, percentEncode)}`;
}
