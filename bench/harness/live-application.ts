import { prepareCaller } from './account.ts';
import { now, upgradeRequest } from './live-clients.ts';

let versions = 0;

/** An application with changes that its live clients receive. */
export interface LiveApplication {
  readonly request: string;
  /** Sets a new version, which is one event. Returns the times of the request and the response. */
  change(): Promise<{ readonly requestedAt: number; readonly answeredAt: number }>;
}

export async function createLiveApplication(baseUrl: string): Promise<LiveApplication> {
  const { headers, applicationId, socketKey } = await prepareCaller(baseUrl);
  const url = `${baseUrl}/api/v1/panel/update-application-settings?applicationId=${applicationId}`;
  return {
    request: upgradeRequest('/api/v1/realtime', { authorization: `Bearer ${socketKey}` }),
    async change() {
      versions += 1;
      const requestedAt = now();
      const response = await fetch(url, {
        method: 'PATCH',
        headers: { ...headers, 'content-type': 'application/json' },
        body: JSON.stringify({ field: 'version', value: `1.${versions}` }),
      });
      if (!response.ok) throw new Error(`${url}: ${response.status} ${await response.text()}`);
      await response.arrayBuffer();
      return { requestedAt, answeredAt: now() };
    },
  };
}
