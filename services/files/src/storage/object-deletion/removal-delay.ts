/** Time that a process has to remove the objects of rows it deleted; then the sweeper does. */
export const OWN_REMOVAL_MS = 15_000;

/** Time in which an abandoned upload may still write its object. */
export const LATE_WRITE_MS = 60_000;
