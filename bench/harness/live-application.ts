import { prepareCaller } from './account.ts';
import { now, upgradeRequest } from './live-clients.ts';
import { request } from './request.ts';

let versions = 0;

/** Creates an application with changes that its live clients receive. */
export async function createLiveApplication(baseUrl: string) {
  const { headers, applicationId, socketKey } = await prepareCaller(baseUrl);
  const url = `${baseUrl}/api/v1/panel/update-application-settings?applicationId=${applicationId}`;
  return {
    request: upgradeRequest('/api/v1/realtime', { authorization: `Bearer ${socketKey}` }),
    /** Sets a new version, which is one event. Returns the times of the request and the response. */
    async change() {
      versions += 1;
      const requestedAt = now();
      await request(url, { method: 'PATCH', headers, json: { field: 'version', value: `1.${versions}` } });
      return { requestedAt, answeredAt: now() };
    },
  };
}
