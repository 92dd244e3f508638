import { LatchkeyBase } from './latchkey.ts';
import type { LatchkeyOptions } from './options.ts';
import { type BrowserSource, openContent } from './upload/browser-content.ts';

export * from './exports.ts';
export type UploadSource = BrowserSource;

/** A client of the REST interface and of live events. */
export class Latchkey extends LatchkeyBase<UploadSource> {
  constructor(options: LatchkeyOptions) {
    super(options, openContent);
  }
}
