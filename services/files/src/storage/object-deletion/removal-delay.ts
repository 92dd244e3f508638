/** Time in which the process that deleted a row removes its object; then the sweeper does. */
export const OWN_REMOVAL_MS = 15_000;

/** Time in which an abandoned upload may still write its object. */
export const LATE_WRITE_MS = 60_000;
