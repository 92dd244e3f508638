export interface BenchRequest extends RequestInit {
  readonly json?: object;
  readonly headers?: Record<string, string>;
  readonly duplex?: 'half';
}

/** Sends a request, a POST unless set, and reads the whole response. Throws unless it is 2xx. */
export async function request(url: string, { json, headers = {}, ...options }: BenchRequest) {
  const content = json && { body: JSON.stringify(json), headers: { 'content-type': 'application/json', ...headers } };
  const response = await fetch(url, { method: 'POST', headers, ...options, ...content });
  const text = await response.text();
  if (!response.ok) throw new Error(`${url}: ${response.status} ${text}`);
  return { headers: response.headers, body: JSON.parse(text) };
}
