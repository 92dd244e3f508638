/** Why an image is rejected: reasons of the service's error catalogue. */
export const IMAGE_REASONS = [
  'image_unsupported',
  'image_animated',
  'image_too_many_pixels',
  'image_side_too_long',
  'image_damaged',
  'image_undecodable',
] as const;

export type ImageReason = (typeof IMAGE_REASONS)[number];

/** The image can't become an avatar. The decoder process does not load the catalogue. */
export class ImageRejected extends Error {
  override readonly name = 'ImageRejected';
  readonly reason: ImageReason;

  constructor(reason: ImageReason) {
    super(reason);
    this.reason = reason;
  }
}
