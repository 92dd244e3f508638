/** Joins the class names that are given. */
export const classes = (...names: ReadonlyArray<string | false | undefined>) => names.filter(Boolean).join(' ');
