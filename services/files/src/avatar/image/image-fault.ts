const IMAGE_FAULTS = [
  'unsupported',
  'hides_file',
  'animated',
  'too_many_pixels',
  'side_too_long',
  'damaged',
  'undecodable',
] as const;

/** Why bytes are no acceptable image. */
export type ImageFault = (typeof IMAGE_FAULTS)[number];

/** Whether text that another process gave names a fault. */
export function isImageFault(text: string): text is ImageFault {
  return (IMAGE_FAULTS as readonly string[]).includes(text);
}

/** Bytes that are no acceptable image. */
export class ImageRefused extends Error {
  override readonly name = 'ImageRefused';
  readonly fault: ImageFault;

  constructor(fault: ImageFault) {
    super(fault);
    this.fault = fault;
  }
}

/** What a header says of the size. */
export interface ImageSize {
  readonly width: number;
  readonly height: number;
}

/** Throws `damaged` unless what has to be so is so. */
export function requireWhole(condition: boolean): asserts condition {
  if (!condition) throw new ImageRefused('damaged');
}
