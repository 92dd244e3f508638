import { isLoopback } from '@latchkey/kit/config/listen-host';
import { listSetting, readConfig } from '@latchkey/kit/config/settings';
import { z } from 'zod';

export interface IssuerSettings {
  readonly name: string;
  /** The issuer identifier: an https URL, or http on loopback. */
  readonly url: URL;
  readonly clientId: string;
  readonly clientSecret: string | undefined;
  readonly scopes: string;
}

const ISSUERS_MAX = 20;
/** Longest URL of an issuer: proxies reject redirects to much longer ones. */
export const URL_LENGTH_MAX = 2_048;
const NAME = /^[a-z][a-z0-9]{0,31}$/;
const ISSUER_SETTING = /^OIDC_.+_(?:ISSUER|CLIENT_ID|CLIENT_SECRET|SCOPES)$/;
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

const issuerSettings = {
  ISSUER: urlSetting,
  CLIENT_ID: credentialSetting,
  CLIENT_SECRET: credentialSetting.optional(),
  SCOPES: scopesSetting,
};
const unlistedSetting = z.never('is of an issuer that OIDC_ISSUERS does not name').optional();

/**
 * Reads settings together with those of each issuer in `OIDC_ISSUERS`: `OIDC_<NAME>_ISSUER`,
 * `_CLIENT_ID`, `_CLIENT_SECRET`, `_SCOPES`. Such settings of an unlisted issuer are a mistake.
 * @throws ConfigError naming all problems
 */
export function readWithIssuers<T extends z.ZodObject>(schema: T, env: NodeJS.ProcessEnv) {
  const listed = namesSetting.safeParse(env.OIDC_ISSUERS || undefined);
  const names = listed.data ?? [];
  const shape: Record<string, z.ZodType> = { ...schema.shape, OIDC_ISSUERS: namesSetting };
  for (const setting of listed.success ? Object.keys(env) : []) {
    if (ISSUER_SETTING.test(setting)) shape[setting] = unlistedSetting;
  }
  for (const name of names) {
    for (const [key, type] of Object.entries(issuerSettings)) shape[settingOf(name, key)] = type;
  }
  const config = readConfig(z.object(shape), env) as Record<string, string | undefined>;
  const oidcIssuers: readonly IssuerSettings[] = names.map((name) => ({
    name,
    url: new URL(config[settingOf(name, 'ISSUER')] ?? ''),
    clientId: config[settingOf(name, 'CLIENT_ID')] ?? '',
    clientSecret: config[settingOf(name, 'CLIENT_SECRET')],
    scopes: config[settingOf(name, 'SCOPES')] ?? '',
  }));
  return { ...(config as z.output<T>), oidcIssuers };
}

function settingOf(name: string, key: string): string {
  return `OIDC_${name.toUpperCase()}_${key}`;
}

function isIssuerUrl(text: string): boolean {
  return isEndpoint(text) && new URL(text).search === '';
}

/** True if the text is a trustworthy URL without credentials and fragment (RFC 6749, 3.1). */
export function isEndpoint(text: string): boolean {
  if (text.length > URL_LENGTH_MAX || !URL.canParse(text)) return false;
  const url = new URL(text);
  return isTrustworthy(url) && url.hash === '' && url.username === '' && url.password === '';
}

/** True if no other host can read or change what is sent to the URL. */
export function isTrustworthy(url: URL): boolean {
  return url.protocol === 'https:' || isLoopbackHttp(url);
}

/** True if the URL is plain HTTP to this machine. */
export function isLoopbackHttp({ protocol, hostname }: URL): boolean {
  return protocol === 'http:' && isLoopback(hostname);
}
