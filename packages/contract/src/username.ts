export const USERNAME_LENGTH = { min: 3, max: 32 } as const;

const { min, max } = USERNAME_LENGTH;

export const USERNAME = new RegExp(`^[A-Za-z0-9_-]{${min},${max}}$`);

/** The rule of usernames in words, for error details. */
export const USERNAME_RULE = `must be ${min} to ${max} ASCII letters, digits, underscores and dashes`;
