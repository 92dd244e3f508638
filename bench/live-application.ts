import { type Caller, prepareCaller } from './account.ts';
import { now, upgradeRequest } from './live-clients.ts';

const PATH = '/api/v1/realtime';
let versions = 0;

/** An application whose clients hear of its changes. */
export interface LiveApplication {
  /** The upgrade request of a client, with the last event that it knows. */
  request(lastEventId?: number): string;
  /**
   * Sets a new version, which is one event. Resolves with the times of the request and the
   * response.
   */
  change(): Promise<{ readonly askedAt: number; readonly answeredAt: number }>;
  /** Reads its settings. Resolves with the duration, in milliseconds. */
  read(): Promise<number>;
}

/** Applications of a new account. */
export async function createLiveApplications(baseUrl: string, count = 1): Promise<LiveApplication[]> {
  const caller = await prepareCaller(baseUrl);
  const { headers } = caller;
  for (let i = 1; i < count; i += 1) {
    await call(`${baseUrl}/api/v1/panel/create-application`, 'POST', headers, { name: `Benchmark ${i}` });
  }
  const { data } = await call(`${baseUrl}/api/v1/panel/get-applications`, 'GET', headers);
  return (data as Listed[]).map((listed) => liveApplication(baseUrl, { ...caller, applicationId: listed.id }, listed));
}

interface Listed {
  readonly id: string;
  readonly applicationApiKeys: { readonly socketKey: string };
}

function liveApplication(baseUrl: string, { headers, applicationId }: Caller, listed: Listed): LiveApplication {
  const authorization = `Bearer ${listed.applicationApiKeys.socketKey}`;
  const settings = (verb: string) => `${baseUrl}/api/v1/panel/${verb}-application-settings?applicationId=${applicationId}`;
  return {
    request: (lastEventId) =>
      upgradeRequest(PATH, { authorization, ...(lastEventId !== undefined && { 'last-event-id': String(lastEventId) }) }),
    async change() {
      versions += 1;
      const askedAt = now();
      await call(settings('update'), 'PATCH', headers, { field: 'version', value: `1.${versions}` });
      return { askedAt, answeredAt: now() };
    },
    async read() {
      const askedAt = now();
      await call(settings('get'), 'GET', headers);
      return now() - askedAt;
    },
  };
}

async function call(url: string, method: string, headers: Record<string, string>, body?: object): Promise<{ data: unknown }> {
  const content = body && { headers: { ...headers, 'content-type': 'application/json' }, body: JSON.stringify(body) };
  const response = await fetch(url, { method, headers, ...content });
  if (!response.ok) throw new Error(`${url}: ${response.status} ${await response.text()}`);
  return (await response.json()) as { data: unknown };
}
