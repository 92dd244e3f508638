/** Whom the launcher tells what it does. */
export interface Reporter {
  /**
   * Tells of something that takes a moment: that it has begun, and how long it took.
   *
   * @param title what is being started
   * @param describe what to add about the result
   */
  step<T>(title: string, work: () => Promise<T>, describe?: (result: T) => string): Promise<T>;
  /** Something worth knowing. */
  note(line: string): void;
  /** Something that went wrong, and that somebody may have to look at. */
  warn(line: string): void;
}

/** Tells nobody. */
export const silentReporter: Reporter = {
  step: (_title, work) => work(),
  note: () => {},
  warn: () => {},
};
