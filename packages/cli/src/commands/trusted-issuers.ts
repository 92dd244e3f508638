import { readFile } from 'node:fs/promises';
import { type Latchkey, LatchkeyError, type NewTrustedIssuer, type TrustedIssuer } from '@latchkey/client';
import { describeLength, KEY_NAME } from '@latchkey/contract/lengths';
import { SCOPES } from '@latchkey/contract/scopes';
import { EXCHANGED_KEY_LIFETIME_S } from '@latchkey/contract/trusted-issuer';
import { InvalidArgumentError, Option } from 'commander';
import { findByNameOrId } from '../lookup/find.ts';
import { type CliCommand, wholeNumber, yesOption } from '../program/command.ts';
import type { Context } from '../program/context.ts';
import { CliError } from '../program/errors.ts';
import { type SessionOptions, withSession } from '../session/session.ts';
import { addRightsOptions, type RightsOptions, requireApps, toRights } from './api-keys.ts';

interface AddOptions extends RightsOptions, SessionOptions {
  readonly issuer: string;
  readonly audience?: string;
  readonly claim: Readonly<Record<string, string>>;
  /** Seconds. */
  readonly lifetime: number;
  readonly jwks?: string;
}

export function addTrustedIssuers(program: CliCommand): void {
  const issuers = program
    .group('trusted-issuers')
    .summary('Let CI jobs get keys for their tokens (asks for the password)')
    .description('Let jobs of CI servers exchange their tokens for keys that expire soon; asks for the password');
  issuers
    .command('list')
    .description('List trusted issuers')
    .runInSession(async (context, client) => {
      const found = await client.trustedIssuers.list();
      const rows = found.map((one) => [one.name, one.issuer, describeClaims(one), one.id]);
      context.printTable(found, ['NAME', 'ISSUER', 'CLAIMS', 'ID'], rows);
    })
    .examples(['latchkey trusted-issuers list', 'Issuers, claims and ids']);
  const { min, max } = EXCHANGED_KEY_LIFETIME_S;
  const claim = new Option('--claim <name=value>', 'a claim that tokens must have, with exactly this text; repeatable');
  addRightsOptions(
    issuers
      .command('add')
      .description('Trust tokens of an issuer that have these claims')
      .argument('<name>', describeLength(KEY_NAME))
      .requiredOption('--issuer <issuer>', 'iss of the tokens: an https URL, or any text with --jwks')
      .option('--audience <audience>', 'aud of the tokens; the URL of the server without it')
      .addOption(claim.argParser(readClaim).makeOptionMandatory())
      .option(
        '--lifetime <seconds>',
        'lifetime of the keys, 60 to 900',
        wholeNumber(min, max, `a whole number from ${min} to ${max}`),
        600,
      )
      .option('--jwks <file>', 'public keys of an issuer that the server cannot reach'),
  )
    .sessionOptions()
    .run(addIssuer)
    .examples(
      [
        'latchkey trusted-issuers add "GitHub Actions" --issuer https://token.actions.githubusercontent.com --claim repository=acme/editor --claim environment=production --scopes files:upload,releases:write --all-apps',
        'Jobs of a repository with that environment',
      ],
      [
        'latchkey trusted-issuers add Cluster --issuer https://kubernetes.default.svc.cluster.local --jwks jwks.json --claim sub=system:serviceaccount:ci:publisher --app "Difference Engine"',
        'A service account of a cluster in a private network',
      ],
    );
  issuers
    .command('remove')
    .description('Stop trusting an issuer; its keys are rejected from their next request on')
    .argument('<issuer>', 'name or id')
    .addOption(yesOption())
    .runInSession(async (context, client, wanted: string) => {
      const all = await client.trustedIssuers.list();
      const { id, name } = findByNameOrId(all, wanted, 'trusted issuer', 'latchkey trusted-issuers list');
      await context.confirm(`Stop trusting "${name}"? Its keys are rejected from their next request on.`);
      await client.trustedIssuers.remove(id);
      context.print({ id }, `"${name}" is no longer trusted.`);
    })
    .examples(['latchkey trusted-issuers remove "GitHub Actions"', 'Remove it by its name']);
}

function readClaim(text: string, claims: Readonly<Record<string, string>> = {}) {
  const [, name = '', value = ''] = /^([^=]+)=(.+)$/s.exec(text) ?? [];
  if (name === '') throw new InvalidArgumentError('It must be a name and a value, such as repository=acme/editor.');
  if (Object.hasOwn(claims, name)) throw new InvalidArgumentError(`${name} has two values. Trust another issuer for each.`);
  return { ...claims, [name]: value };
}

const describeClaims = ({ claims }: TrustedIssuer) =>
  Object.entries(claims)
    .map(([name, value]) => `${name}=${value}`)
    .join(' ');

async function addIssuer(context: Context, name: string, options: AddOptions): Promise<void> {
  const { issuer, claim: claims, lifetime: lifetimeSeconds, jwks } = options;
  requireApps(options, 'the jobs');
  const keys = jwks === undefined ? {} : { jwks: await readKeys(jwks) };
  const audience = options.audience ?? (await context.readUrl()).replace(/\/+$/, '');
  await withSession(context, options, async (client) => {
    const rights = { scopes: [...SCOPES], ...(await toRights(client, options)) };
    const settings = { name, issuer, audience, claims, lifetimeSeconds, ...keys, ...rights };
    const created = await create(context, client, settings);
    context.print(created, `Trusted "${created.name}". Set LATCHKEY_TRUSTED_ISSUER=${created.id} in its jobs.`);
  });
}

async function readKeys(path: string): Promise<NonNullable<NewTrustedIssuer['jwks']>> {
  try {
    return JSON.parse(await readFile(path, 'utf8'));
  } catch (err) {
    if (err instanceof SyntaxError) throw new CliError('usage', `${path} is not JSON. Save the JSON Web Key Set of the issuer.`);
    throw err;
  }
}

/** The code that signed in cannot be used again. */
async function create(context: Context, client: Latchkey, settings: NewTrustedIssuer): Promise<TrustedIssuer> {
  try {
    return await client.trustedIssuers.create(settings);
  } catch (err) {
    if (!(err instanceof LatchkeyError) || err.code !== 'two_factor_required') throw err;
    const question = { message: 'Next code of the authenticator app', option: 'it in a terminal', what: 'another code' };
    return client.trustedIssuers.create({ ...settings, code: await context.prompts.password(question) });
  }
}
