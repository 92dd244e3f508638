import type { Adapter, AdapterFactory, AdapterPayload } from 'oidc-provider';

/** What an issuer of a test keeps: in memory, and all of it until the test is over. That something has expired it sees by itself. */
export function createIssuerStore(): AdapterFactory {
  const kept = new Map<string, AdapterPayload>();
  const findBy = (kind: string, matches: (payload: AdapterPayload) => boolean) => {
    return [...kept].find(([key, payload]) => key.startsWith(`${kind}:`) && matches(payload))?.[1];
  };
  return (kind): Adapter => ({
    upsert: async (id, payload) => void kept.set(`${kind}:${id}`, payload),
    find: async (id) => kept.get(`${kind}:${id}`),
    findByUid: async (uid) => findBy(kind, (payload) => payload.uid === uid),
    findByUserCode: async (userCode) => findBy(kind, (payload) => payload.userCode === userCode),
    async consume(id) {
      const payload = kept.get(`${kind}:${id}`);
      if (payload) payload.consumed = Math.floor(Date.now() / 1000);
    },
    destroy: async (id) => void kept.delete(`${kind}:${id}`),
    async revokeByGrantId(grantId) {
      for (const [key, payload] of kept) if (payload.grantId === grantId) kept.delete(key);
    },
  });
}
