/** Orders of a page of the applications. */
export const APPLICATION_SORTS = ['name', 'status', 'version', 'files', 'storage', 'updatedAt'] as const;

/** Orders of a list, each also with `-` for descending. */
export const withDescending = <Name extends string>(names: readonly Name[]) =>
  names.flatMap((name) => [name, `-${name}` as const]);
