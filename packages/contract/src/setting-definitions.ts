import { type Length, VERSION } from './lengths.ts';

interface Setting {
  /** Field of `ApplicationSettings` in the protocol. */
  readonly field: string;
  /** For the command line: effect of a flag while it is on, or description of a text. */
  readonly meaning: string;
  /** Texts of the dashboard. The title of a text also names it in the command line. */
  readonly title: string;
  readonly hint: string;
}

/** The settings of applications that are on or off, by their names in the REST interface. */
export const APPLICATION_FLAGS = {
  applicationLicenseRequiresClientId: {
    field: 'licenseRequiresClientId',
    meaning: 'licenses need a client id',
    title: 'Client ID required for licenses',
    hint: 'A license is used only by a client that sends its id.',
  },
  applicationUserRequiresClientId: {
    field: 'userRequiresClientId',
    meaning: 'users need a client id',
    title: 'Client ID required for users',
    hint: 'A user signs in only from a client that sends its id.',
  },
  applicationUserRequiresLicense: {
    field: 'userRequiresLicense',
    meaning: 'users need a license',
    title: 'License required for users',
    hint: 'A user signs in only with a license.',
  },
} as const satisfies Readonly<Record<string, Setting>>;

export type FlagName = keyof typeof APPLICATION_FLAGS;

export const FLAG_NAMES = Object.keys(APPLICATION_FLAGS) as readonly FlagName[];

interface Text extends Setting {
  /** Bounds after trimming. Control characters are rejected. */
  readonly length: Length;
  /** Value of new applications. */
  readonly initial: string;
  readonly example: string;
  /** True if live clients are notified of a new value. */
  readonly isLive: boolean;
}

/** The settings of applications that are texts, by their names in the REST interface. */
export const APPLICATION_TEXTS = {
  version: {
    field: 'version',
    length: VERSION,
    initial: '1.0',
    example: '1.4.2',
    isLive: true,
    meaning: 'Version that live clients are notified of. Put it in quotes: 1.10 is a number.',
    title: 'Version',
    hint: 'Connected clients hear of a new version immediately.',
  },
} as const satisfies Readonly<Record<string, Text>>;

export type TextName = keyof typeof APPLICATION_TEXTS;

export const TEXT_NAMES = Object.keys(APPLICATION_TEXTS) as readonly TextName[];

/** A record with a value for each of the settings. */
export function mapSettings<Name extends string, S, T>(
  settings: Readonly<Record<Name, S>>,
  toValue: (setting: S, name: Name) => T,
): Record<Name, T> {
  const entries = Object.entries<S>(settings).map(([name, setting]) => [name, toValue(setting, name as Name)]);
  return Object.fromEntries(entries) as Record<Name, T>;
}

export const STATUSES = ['online', 'paused'] as const;
