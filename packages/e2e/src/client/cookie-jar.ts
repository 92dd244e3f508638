interface Cookie {
  readonly value: string;
  readonly path: string;
}

/** The cookies of one host, as a browser stores them. */
export class CookieJar {
  readonly #cookies = new Map<string, Cookie>();

  /** Takes what an answer sets, and forgets what it clears. */
  take(headers: Headers): void {
    for (const line of headers.getSetCookie()) {
      const [pair = '', ...attributes] = line.split('; ');
      const name = pair.slice(0, pair.indexOf('='));
      const value = pair.slice(name.length + 1);
      const path = attributes.find((attribute) => /^path=/i.test(attribute))?.slice('path='.length) ?? '/';
      const ended = value === '' || attributes.some((attribute) => /^max-age=0$/i.test(attribute));
      if (ended) this.#cookies.delete(name);
      else this.#cookies.set(name, { value, path });
    }
  }

  get(name: string): string | undefined {
    return this.#cookies.get(name)?.value;
  }

  set(name: string, value: string): void {
    this.#cookies.set(name, { value, path: '/' });
  }

  header(path: string): string {
    const sent = [...this.#cookies].filter(([, cookie]) => path.startsWith(cookie.path));
    return sent.map(([name, { value }]) => `${name}=${value}`).join('; ');
  }
}
