/** Lets the browser store what a URL responds with. The page stays, and uploads go on. */
export function downloadUrl(fileName: string, url: string): void {
  const link = document.createElement('a');
  link.href = url;
  link.download = fileName;
  link.click();
}

/** Offers a text as a file, which the browser stores. */
export function downloadText(fileName: string, type: string, parts: BlobPart[]): void {
  const url = URL.createObjectURL(new Blob(parts, { type }));
  downloadUrl(fileName, url);
  // The download has begun by then.
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
