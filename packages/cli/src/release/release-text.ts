const VERSION = /(?:^|[^\d.])(\d+\.\d+\.\d+(?:-(?:alpha|beta|rc|next|canary|nightly)(?:[.-]?\d+)*)?)(?!\d)/;

export const readVersion = (name: string): string | undefined => VERSION.exec(name)?.[1];

/** The section of a version in a changelog in Markdown, else the whole text. */
export function readNotes(text: string, version: string): string {
  const lines = text.split(/\r?\n/);
  const start = lines.findIndex((line) => /^#{1,3} /.test(line) && line.split(/[\s[\]()v]+/).includes(version));
  if (start === -1) return text.trim();
  const level = /^#+ /.exec(lines[start] ?? '')?.[0] ?? '';
  const length = lines.slice(start + 1).findIndex((line) => line.startsWith(level));
  return lines
    .slice(start + 1, length === -1 ? undefined : start + 1 + length)
    .join('\n')
    .trim();
}
