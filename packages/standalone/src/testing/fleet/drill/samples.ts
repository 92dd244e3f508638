/** What the load consists of. */
export type Kind = 'read' | 'table' | 'write' | 'upload' | 'large upload' | 'sign-in' | 'avatar' | 'revocation';

/** One request and what came of it. */
export interface Sample {
  readonly kind: Kind;
  /** As `performance.now()` counts. */
  readonly startedAt: number;
  readonly endedAt: number;
  /** `200`, status and code of a refusal, or how it was lost, as `lost ECONNRESET`. */
  readonly outcome: string;
}

/** Whether a request did what it was sent for. */
export const succeeded = ({ outcome }: Sample): boolean => outcome === '200';

/** Whether no answer came. */
export const isLost = ({ outcome }: Sample): boolean => outcome.startsWith('lost');

/** Failures by what was sent and what came, with how often. */
export function tellFailures(samples: readonly Sample[]): string {
  const counts = new Map<string, number>();
  for (const { kind, outcome } of samples.filter((sample) => !succeeded(sample))) {
    const text = `${kind} ${outcome}`;
    counts.set(text, (counts.get(text) ?? 0) + 1);
  }
  return [...counts].map(([text, count]) => `${count} × ${text}`).join('; ');
}

/** What was sent and answered, in the order of the answers, and what was wrong with answers. */
export class Samples {
  readonly all: Sample[] = [];
  readonly flaws: string[] = [];

  /** What was wrong with answers since it was last asked. */
  takeFlaws(): string[] {
    return this.flaws.splice(0);
  }

  /** Those that had not ended before a time. */
  since(time: number): Sample[] {
    return this.all.filter(({ endedAt }) => endedAt >= time);
  }

  /** Whether nothing has failed of what was sent since a time. */
  isHealthySince(time: number): boolean {
    return this.all.every((sample) => sample.startedAt < time || succeeded(sample));
  }

  /** Whether each kind has succeeded since a time. */
  hasEachSince(time: number, kinds: ReadonlySet<Kind>): boolean {
    const ended = this.all.filter((sample) => sample.startedAt >= time && succeeded(sample));
    return [...kinds].every((kind) => ended.some((sample) => sample.kind === kind));
  }
}
