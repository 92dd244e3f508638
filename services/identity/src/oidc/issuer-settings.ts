import { listSetting, readConfig } from '@latchkey/kit/config/settings';
import { z } from 'zod';

/** An OpenID Connect issuer at which the operator registered this service. */
export interface IssuerSettings {
  readonly name: string;
  /** The issuer identifier: an https URL, or http on loopback. */
  readonly url: URL;
  readonly clientId: string;
  readonly clientSecret: string | undefined;
  readonly scopes: string;
}

const ISSUERS_MAX = 20;
const NAME = /^[a-z][a-z0-9]{0,31}$/;
const ISSUER_SETTING = /^OIDC_(.+)_(?:ISSUER|CLIENT_ID|CLIENT_SECRET|SCOPES)$/;
const SCOPES = /^[\x21\x23-\x5b\x5d-\x7e]+(?: [\x21\x23-\x5b\x5d-\x7e]+)*$/;
const CREDENTIAL = /^[\x20-\x7e]{1,1024}$/;

const namesSetting = listSetting
  .refine((names) => names.every((name) => NAME.test(name)), 'must list names of lower-case letters and digits')
  .refine((names) => new Set(names).size === names.length, 'must not name an issuer twice')
  .refine((names) => names.length <= ISSUERS_MAX, `must name at most ${ISSUERS_MAX} issuers`)
  .default([]);
const urlSetting = z.string().refine(isIssuerUrl, 'must be an https URL without query, or http on loopback');
const credentialSetting = z.string().regex(CREDENTIAL, 'must be ASCII text of up to 1,024 characters');
const scopesSetting = z
  .string()
  .regex(SCOPES, 'must be scopes separated by single spaces')
  .refine((text) => text.split(' ').includes('openid'), 'must contain openid')
  .default('openid profile email');

const prefixOf = (name: string) => `OIDC_${name.toUpperCase()}`;

/**
 * Reads settings together with those of each issuer in `OIDC_ISSUERS`: `OIDC_<NAME>_ISSUER`,
 * `_CLIENT_ID`, `_CLIENT_SECRET`, `_SCOPES`. Such settings of an unlisted issuer are a mistake.
 * @throws ConfigError naming all problems
 */
export function readWithIssuers<T extends z.ZodObject>(
  schema: T,
  env: NodeJS.ProcessEnv,
): z.output<T> & { readonly oidcIssuers: readonly IssuerSettings[] } {
  const listed = namesSetting.safeParse(env.OIDC_ISSUERS || undefined);
  const names = listed.data ?? [];
  const shape = { OIDC_ISSUERS: namesSetting, ...(listed.success && unlistedShape(names, env)), ...shapeOf(names) };
  const config = readConfig(z.object({ ...schema.shape, ...shape }), env) as unknown as Record<string, string | undefined>;
  const oidcIssuers = names.map((name) => ({
    name,
    url: new URL(config[`${prefixOf(name)}_ISSUER`] ?? ''),
    clientId: config[`${prefixOf(name)}_CLIENT_ID`] ?? '',
    clientSecret: config[`${prefixOf(name)}_CLIENT_SECRET`],
    scopes: config[`${prefixOf(name)}_SCOPES`] ?? '',
  }));
  return { ...(config as unknown as z.output<T>), oidcIssuers };
}

function unlistedShape(names: readonly string[], env: NodeJS.ProcessEnv): Record<string, z.ZodType> {
  const prefixes = new Set(names.map(prefixOf));
  const isUnlisted = (setting: string) => {
    const name = ISSUER_SETTING.exec(setting)?.[1];
    return name !== undefined && !prefixes.has(`OIDC_${name}`);
  };
  const unlisted = z.never('is of an issuer that OIDC_ISSUERS does not name').optional();
  return Object.fromEntries(
    Object.keys(env)
      .filter(isUnlisted)
      .map((setting) => [setting, unlisted]),
  );
}

function shapeOf(names: readonly string[]): Record<string, z.ZodType> {
  const settings = names.map(prefixOf).flatMap(
    (prefix): Array<[string, z.ZodType]> => [
      [`${prefix}_ISSUER`, urlSetting],
      [`${prefix}_CLIENT_ID`, credentialSetting],
      [`${prefix}_CLIENT_SECRET`, credentialSetting.optional()],
      [`${prefix}_SCOPES`, scopesSetting],
    ],
  );
  return Object.fromEntries(settings);
}

function isIssuerUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const url = new URL(text);
  return isTrustworthy(url) && url.search === '' && url.hash === '' && url.username === '' && url.password === '';
}

/** Whether no other host can read or change what is sent to the URL. */
export function isTrustworthy(url: URL): boolean {
  return url.protocol === 'https:' || isLoopbackHttp(url);
}

/** Whether the URL is plain HTTP to this machine. */
export function isLoopbackHttp({ protocol, hostname }: URL): boolean {
  return protocol === 'http:' && (hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d+){3}$/.test(hostname));
}
