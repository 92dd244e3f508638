/** What is before the bytes of a frame: a number that says what it is, and the length, 4 bytes each. */
const HEAD_BYTES = 8;

/** One message on the pipe between the worker and a decoder. */
export interface Frame {
  readonly kind: number;
  readonly bytes: Buffer;
}

/**
 * Kinds of frames. An image to convert, or the path of one, each behind the most pixels that it may have, in 4 bytes; what was made of it; why it is
 * refused; why it could not be read. Before all that, that the process has started.
 */
export const FRAME = { image: 1, path: 2, converted: 3, refused: 4, unreadable: 5, ready: 6 } as const;

/** What goes before the bytes of a frame. */
export function frameHead(kind: number, byteSize: number): Buffer {
  const head = Buffer.alloc(HEAD_BYTES);
  head.writeUInt32BE(kind, 0);
  head.writeUInt32BE(byteSize, 4);
  return head;
}

/** Who reads frames. */
export interface FrameListener {
  onFrame(frame: Frame): void;
  /** Told once of a frame longer than any may be: what comes from then on is not looked at. */
  onTooLong(): void;
}

/** Puts frames together out of the pieces that they arrive in. Each piece is copied once. */
export class FrameReader {
  readonly #listener: FrameListener;
  readonly #bytesMax: number;
  readonly #head = Buffer.alloc(HEAD_BYTES);
  #headBytes = 0;
  #body: Buffer | undefined;
  #bodyBytes = 0;
  #isLost = false;

  /** @param bytesMax what a frame may have, and memory is set aside for */
  constructor(bytesMax: number, listener: FrameListener) {
    this.#bytesMax = bytesMax;
    this.#listener = listener;
  }

  push(piece: Buffer): void {
    for (let at = 0; at < piece.length && !this.#isLost; ) {
      if (!this.#body) {
        const taken = piece.copy(this.#head, this.#headBytes, at);
        this.#headBytes += taken;
        at += taken;
        if (this.#headBytes < HEAD_BYTES) return;
        const byteSize = this.#head.readUInt32BE(4);
        if (byteSize > this.#bytesMax) {
          this.#isLost = true;
          this.#listener.onTooLong();
          return;
        }
        this.#body = Buffer.allocUnsafeSlow(byteSize);
        this.#bodyBytes = 0;
      }
      const taken = piece.copy(this.#body, this.#bodyBytes, at);
      this.#bodyBytes += taken;
      at += taken;
      if (this.#bodyBytes < this.#body.length) return;
      const frame = { kind: this.#head.readUInt32BE(0), bytes: this.#body };
      this.#body = undefined;
      this.#headBytes = 0;
      this.#listener.onFrame(frame);
    }
  }
}
