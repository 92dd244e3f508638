interface Flag {
  /** Field of `ApplicationSettings` in the protocol. */
  readonly field: string;
  /** Effect of the flag while it is on, for the command line. */
  readonly meaning: string;
  /** Texts of the dashboard. */
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
} as const satisfies Readonly<Record<string, Flag>>;

export type FlagName = keyof typeof APPLICATION_FLAGS;

export const FLAG_NAMES = Object.keys(APPLICATION_FLAGS) as readonly FlagName[];

/** A record with a value for each flag. */
export function mapFlags<T>(toValue: (flag: (typeof APPLICATION_FLAGS)[FlagName], name: FlagName) => T): Record<FlagName, T> {
  const entries = FLAG_NAMES.map((name) => [name, toValue(APPLICATION_FLAGS[name], name)]);
  return Object.fromEntries(entries) as Record<FlagName, T>;
}

export const STATUSES = ['online', 'paused'] as const;
