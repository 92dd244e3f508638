const MIB = 1_048_576;

/** Sizes in MiB; below a tenth of one in KiB or bytes. */
export function formatBytes(bytes: number): string {
  if (bytes < 1_024) return `${bytes} B`;
  if (bytes < MIB / 10) return `${(bytes / 1_024).toFixed(1)} KiB`;
  return `${(bytes / MIB).toFixed(1)} MiB`;
}
