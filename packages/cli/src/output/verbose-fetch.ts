/**
 * Reports requests and error responses for --verbose: neither bodies that are sent nor headers, as
 * these hold passwords and keys, and no successes, as these hold keys.
 */
export function verboseFetch(report: (line: string) => void): typeof fetch {
  return async (input, init) => {
    const { pathname, search } = new URL(String(input));
    const response = await fetch(input, init);
    const id = response.headers.get('x-request-id') ?? 'none';
    report(`${init?.method ?? 'GET'} ${pathname}${search}: ${response.status}, request id ${id}`);
    if (!response.ok) report(`Response: ${(await response.clone().text()).trim()}`);
    return response;
  };
}
