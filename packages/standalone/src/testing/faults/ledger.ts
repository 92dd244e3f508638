/** A file as those who sent it know it. */
export interface Entry {
  readonly applicationId: string;
  /** Names that it may have: more than one after a change of name that was not answered. None was ever another file's. */
  names: string[];
  /** Known once the upload was answered, or the file was found. */
  id: string | undefined;
  readonly byteSize: number;
  /** SHA-256 in hex. */
  readonly checksum: string;
  /** `gone` also where nothing may have come of the upload. */
  state: 'there' | 'gone' | 'in doubt';
  /** Whether somebody is at it. */
  busy: boolean;
}

/** An application as its owner knows it. */
export interface KnownApplication {
  readonly id: string;
  state: 'there' | 'gone' | 'in doubt';
}

/** What one account was told, and what it was not. */
export class Ledger {
  readonly entries: Entry[] = [];
  readonly applications: KnownApplication[] = [];
  #names = 0;

  /** A name that no file of the account has had. */
  newName(): string {
    this.#names += 1;
    return `f-${this.#names}`;
  }

  application(id: string): KnownApplication | undefined {
    return this.applications.find((application) => application.id === id);
  }

  /** Applications to upload to. */
  usable(): KnownApplication[] {
    return this.applications.filter(({ state }) => state === 'there');
  }

  /** Files that are known to be there and that nobody is at. */
  idle(): Entry[] {
    return this.entries.filter(
      ({ state, busy, applicationId }) => state === 'there' && !busy && this.application(applicationId)?.state === 'there',
    );
  }
}
