/** What a command did: as a sentence or more for people, and as an object for scripts. */
export interface Outcome {
  readonly text: string;
  readonly json: object;
}

/** Why a command did nothing. */
export class Refused extends Error {
  override readonly name = 'Refused';
  /** For scripts, as stable as those of the error catalogue. */
  readonly reason: string;

  constructor(reason: string, sentence: string) {
    super(sentence);
    this.reason = reason;
  }
}
