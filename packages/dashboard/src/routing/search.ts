// Readers of search parameters, which any link can set. The router merges the result of
// `validateSearch` over the values of the URL. So that names each parameter of its page, also the
// rejected ones as undefined.

/** A text that is not empty. */
export const readText = (value: unknown) => (typeof value === 'string' && value !== '' ? value : undefined);

export const readFlag = (value: unknown) => (value === true ? value : undefined);

/** The number of a page after the first. */
export const readPage = (value: unknown) => (Number.isSafeInteger(value) && Number(value) > 1 ? Number(value) : undefined);

/** Words between single slashes, then ASCII: browsers turn some other paths into another site. */
const PAGE_PATH = /^(?:\/[\w-]+)+\/?(?:[?#][\x21-\x7e]*)?$/;

/** The path of a page of the dashboard. */
export const readReturnTo = (value: unknown) => (typeof value === 'string' && PAGE_PATH.test(value) ? value : undefined);
