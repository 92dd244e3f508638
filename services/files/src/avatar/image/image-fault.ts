/** Why bytes are no acceptable image. */
export type ImageFault = 'unsupported' | 'animated' | 'too_many_pixels' | 'damaged';

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
