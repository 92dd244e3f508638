import type { OidcIssuer, UserClaims } from '../fakes/oidc-issuer.ts';
import type { Answer, Api } from './api.ts';
import { PASSWORD, unique } from './caller.ts';
import { CookieJar } from './cookie-jar.ts';

const OIDC = '/api/v1/auth/oidc';

/** Creates a user at an issuer; returns their login. */
export function createUser(issuer: OidcIssuer, claims: UserClaims = {}): string {
  const login = unique('oidc');
  issuer.know(login, { preferred_username: login, email: `${login}@example.com`, email_verified: true, ...claims });
  return login;
}

/** Lines of `Set-Cookie` that set or clear a cookie. */
export function cookieLines(headers: Headers, name: string): string[] {
  return headers.getSetCookie().filter((line) => line.startsWith(`${name}=`));
}

/** A browser that signs in at an instance by OpenID Connect. */
export class OidcBrowser {
  readonly jar = new CookieJar();
  readonly #api: Api;
  readonly #issuer: OidcIssuer;
  /** Redirect URI of the issuer. */
  #callback = `${OIDC}/callback`;

  /** @param session cookie of a session that it has already */
  constructor(api: Api, issuer: OidcIssuer, session?: string) {
    this.#api = api;
    this.#issuer = issuer;
    if (session !== undefined) this.jar.set('session', session.slice('session='.length));
  }

  /** Begins a sign-in; a success has no envelope. */
  async start(issuer = 'corp'): Promise<Response> {
    const url = `${this.#api.baseUrl}${OIDC}/start?issuer=${issuer}`;
    const response = await fetch(url, { redirect: 'manual', headers: { cookie: this.jar.header(`${OIDC}/start`) } });
    this.jar.take(response.headers);
    return response;
  }

  /** Begins the linking of the account of its session. */
  async link(csrfToken: string, proof: { password?: string; code?: string } = { password: PASSWORD }): Promise<Answer> {
    const api = this.#api.with({ cookie: this.jar.header(`${OIDC}/link`), 'x-csrf-token': csrfToken });
    const answer = await api.post(`${OIDC}/link`, { issuer: 'corp', ...proof });
    this.jar.take(answer.headers);
    return answer;
  }

  /** Visits the issuer, beginning a sign-in unless given a URL; returns the callback's query. */
  async visit(login: string, { url, turnBack = false }: { url?: string; turnBack?: boolean } = {}): Promise<string> {
    const authorizationUrl = url ?? (await this.start()).headers.get('location') ?? '';
    this.#callback = new URL(new URL(authorizationUrl).searchParams.get('redirect_uri') ?? '').pathname;
    return this.#issuer.visit(authorizationUrl, login, turnBack);
  }

  /** Comes back. */
  async comeBack(query: string, mayFail = false): Promise<Answer> {
    const api = this.#api.with({ cookie: this.jar.header(this.#callback) });
    const answer = await api.get(this.#callback, query, { mayFail });
    this.jar.take(answer.headers);
    return answer;
  }

  /** Signs in from beginning to end. */
  async signIn(login: string): Promise<Answer> {
    return this.comeBack(await this.visit(login));
  }

  /** Shows the second factor. */
  async complete(code: string): Promise<Answer> {
    const answer = await this.#api.with({ cookie: this.jar.header(`${OIDC}/complete`) }).post(`${OIDC}/complete`, { code });
    this.jar.take(answer.headers);
    return answer;
  }

  async session(): Promise<Answer> {
    return this.#api.with({ cookie: this.jar.header('/') }).get('/api/v1/auth/session');
  }
}
