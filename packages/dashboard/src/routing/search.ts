// Readers of search parameters, which any link can set.

type Search<Readers extends Record<string, (value: unknown) => unknown>> = {
  readonly [Name in keyof Readers]?: ReturnType<Readers[Name]>;
};

/**
 * A `validateSearch` of these parameters. The router merges its result over the values of the URL:
 * so it has each of them, also the rejected ones as undefined.
 */
export function readSearch<Readers extends Record<string, (value: unknown) => unknown>>(readers: Readers) {
  return (search: Record<string, unknown>): Search<Readers> =>
    Object.fromEntries(Object.entries(readers).map(([name, read]) => [name, read(search[name])])) as Search<Readers>;
}

/** A text that is not empty. */
export const readText = (value: unknown) => (typeof value === 'string' && value !== '' ? value : undefined);

export const readFlag = (value: unknown) => (value === true ? value : undefined);

/** The number of a page after the first. */
export const readPage = (value: unknown) => (Number.isSafeInteger(value) && Number(value) > 1 ? Number(value) : undefined);

/** Words between single slashes, then ASCII: browsers turn some other paths into another site. */
const PAGE_PATH = /^(?:\/[\w-]+)+\/?(?:[?#][\x21-\x7e]*)?$/;

/** The path of a page of the dashboard. */
export const readReturnTo = (value: unknown) => (typeof value === 'string' && PAGE_PATH.test(value) ? value : undefined);
