import { ConfigError, listSetting, readConfig } from '@latchkey/kit/config';
import { z } from 'zod';

/** An issuer that accounts may sign in at, as the operator registered this service there. */
export interface IssuerSettings {
  /** What this service calls it. */
  readonly name: string;
  /** Its identifier, an https URL, or http on loopback. */
  readonly url: URL;
  readonly clientId: string;
  /** Undefined for a public client. */
  readonly clientSecret: string | undefined;
  /** Separated by spaces; `openid` is among them. */
  readonly scopes: string;
}

const ISSUERS_MAX = 20;
const NAME = /^[a-z][a-z0-9]{0,31}$/;
/** The settings that an issuer has. The list of issuers and what holds for all of them are called otherwise. */
const OF_ISSUER = /^OIDC_(.+)_(?:ISSUER|CLIENT_ID|CLIENT_SECRET|SCOPES)$/;
const SCOPES = /^[\x21\x23-\x5b\x5d-\x7e]+(?: [\x21\x23-\x5b\x5d-\x7e]+)*$/;
/** Visible ASCII: other characters could not be told apart from mistakes, and a secret is never made of them. */
const CREDENTIAL = /^[\x20-\x7e]{1,1024}$/;

const namesSetting = listSetting
  .refine((names) => names.every((name) => NAME.test(name)), 'must list names of lower-case letters and digits')
  .refine((names) => new Set(names).size === names.length, 'must not name an issuer twice')
  .refine((names) => names.length <= ISSUERS_MAX, `must name at most ${ISSUERS_MAX} issuers`)
  .default([]);

const listOfIssuers = z.object({ OIDC_ISSUERS: namesSetting });

const urlSetting = z.string().refine(isIssuerUrl, 'must be an https URL without query, or http on loopback');
const credentialSetting = z.string().regex(CREDENTIAL, 'must be ASCII text of up to 1,024 characters');
const scopesSetting = z
  .string()
  .regex(SCOPES, 'must be scopes separated by single spaces')
  .refine((text) => text.split(' ').includes('openid'), 'must contain openid')
  .default('openid profile email');

/**
 * Reads settings together with those of every issuer that `OIDC_ISSUERS` names: `OIDC_<NAME>_ISSUER`, `_CLIENT_ID`, `_CLIENT_SECRET`, `_SCOPES`.
 * Such settings of any other are a problem: somebody means an issuer to be there.
 *
 * @throws ConfigError naming all problems at once
 */
export function readWithIssuers<T extends z.ZodObject>(
  schema: T,
  env: NodeJS.ProcessEnv,
): z.output<T> & { readonly oidcIssuers: readonly IssuerSettings[] } {
  const names = issuerNames(env);
  const shape = { ...unnamedShape(env), ...Object.assign({}, ...names.map(shapeOf)) };
  const config = readConfig(z.object({ ...schema.shape, ...listOfIssuers.shape, ...shape }), env) as Record<string, unknown>;
  const oidcIssuers = names.map((name) => issuerOf(name, config as Record<string, string | undefined>));
  return { ...(config as z.output<T>), oidcIssuers };
}

/** The names, or none where they are wrong, which is told of with all other problems. */
function issuerNames(env: NodeJS.ProcessEnv): string[] {
  try {
    return readConfig(listOfIssuers, env).OIDC_ISSUERS;
  } catch (err) {
    if (err instanceof ConfigError) return [];
    throw err;
  }
}

/** Refuses settings of issuers that are not named. Where no list of names can be read, that is the problem. */
function unnamedShape(env: NodeJS.ProcessEnv) {
  const list = listOfIssuers.safeParse({ OIDC_ISSUERS: env.OIDC_ISSUERS || undefined });
  if (!list.success) return {};
  const prefixes = new Set(list.data.OIDC_ISSUERS.map(prefixOf));
  const unnamed = Object.keys(env).filter((setting) => {
    const [, name] = OF_ISSUER.exec(setting) ?? [];
    return name !== undefined && !prefixes.has(`OIDC_${name}`);
  });
  return Object.fromEntries(
    unnamed.map((setting) => [setting, z.never('is of an issuer that OIDC_ISSUERS does not name').optional()]),
  );
}

function prefixOf(name: string): string {
  return `OIDC_${name.toUpperCase()}`;
}

function shapeOf(name: string) {
  const prefix = prefixOf(name);
  return {
    [`${prefix}_ISSUER`]: urlSetting,
    [`${prefix}_CLIENT_ID`]: credentialSetting,
    [`${prefix}_CLIENT_SECRET`]: credentialSetting.optional(),
    [`${prefix}_SCOPES`]: scopesSetting,
  };
}

function issuerOf(name: string, config: Record<string, string | undefined>): IssuerSettings {
  const prefix = prefixOf(name);
  return {
    name,
    url: new URL(config[`${prefix}_ISSUER`] ?? ''),
    clientId: config[`${prefix}_CLIENT_ID`] ?? '',
    clientSecret: config[`${prefix}_CLIENT_SECRET`],
    scopes: config[`${prefix}_SCOPES`] ?? '',
  };
}

function isIssuerUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const url = new URL(text);
  return isTrustworthy(url) && url.search === '' && url.hash === '' && url.username === '' && url.password === '';
}

/** Whether nobody on the way can read or change what is sent there. */
export function isTrustworthy(url: URL): boolean {
  return url.protocol === 'https:' || isLoopbackHttp(url);
}

/** Whether the URL is plain HTTP to this machine. */
export function isLoopbackHttp({ protocol, hostname }: URL): boolean {
  return protocol === 'http:' && (hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d+){3}$/.test(hostname));
}
