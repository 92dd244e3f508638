import { LatchkeyBase } from './latchkey.ts';
import type { LatchkeyOptions } from './options.ts';
import { type NodeSource, openContent } from './upload/node-content.ts';

export * from './exports.ts';
export type UploadSource = NodeSource;

/** A client of the REST interface and of live events. */
export class Latchkey extends LatchkeyBase<UploadSource> {
  constructor(options: LatchkeyOptions) {
    super(options, openContent);
  }
}
