import { expect } from 'vitest';
import { ConfigError } from '../config/settings.ts';

/** The problems that a reader of settings reports. */
export function problemsOf(read: () => unknown): string[] {
  try {
    read();
    return [];
  } catch (err) {
    expect(err).toBeInstanceOf(ConfigError);
    return (err as ConfigError).message.split('\n');
  }
}
