import { lookup } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import ipaddr from 'ipaddr.js';
import { DEADLINES_MS } from '../rpc/deadlines.ts';

/** Rejects a connection to a network that is not public. */
export class InternalAddressError extends Error {
  constructor() {
    super('the address is internal');
  }
}

/** True for an address that is routed in the Internet (IANA special-purpose registries). */
export function isPublicAddress(address: string): boolean {
  return isIP(address) !== 0 && ipaddr.process(address.replace(/%.*/s, '')).range() === 'unicast';
}

/** Resolves a name and checks its addresses, so that the checked address is the one connected to. */
const lookupPublic: LookupFunction = (hostname, options, callback) => {
  lookup(hostname, { ...options, all: true }, (err, addresses) => {
    const isInternal = !err && !addresses.every(({ address }) => isPublicAddress(address));
    const failure = err ?? (isInternal ? new InternalAddressError() : null);
    const [first = { address: '', family: 0 }] = addresses ?? [];
    if (options.all) callback(failure, addresses);
    else callback(failure, first.address, first.family);
  });
};

/**
 * `fetch` for URLs that users chose: it connects to public addresses only.
 *
 * @param internalHosts hosts that may be internal, as `URL.host` has them
 * @returns `fetch`, which rejects with {@link InternalAddressError} as the error or its cause
 */
export function createPublicFetch(internalHosts: ReadonlySet<string>): typeof globalThis.fetch {
  let loaded: ReturnType<typeof loadAgents> | undefined;
  return (async (input: string | URL, init?: RequestInit) => {
    const url = new URL(input);
    const isListed = internalHosts.has(url.host);
    // Addresses are connected to without a look-up.
    const literal = url.hostname.replace(/^\[|\]$/g, '');
    if (!isListed && isIP(literal) !== 0 && !isPublicAddress(literal)) throw new InternalAddressError();
    loaded ??= loadAgents();
    const { fetch, anywhere, publicOnly } = await loaded;
    return fetch(url, { ...(init as object), dispatcher: isListed ? anywhere : publicOnly });
  }) as typeof globalThis.fetch;
}

/** Loaded with the first request, as the library takes memory at rest. */
async function loadAgents() {
  const { Agent, fetch } = await import('undici');
  const connect = { timeout: DEADLINES_MS.connect };
  const anywhere = new Agent({ connect });
  const publicOnly = new Agent({ connect: { ...connect, lookup: lookupPublic } });
  return { fetch, anywhere, publicOnly };
}
