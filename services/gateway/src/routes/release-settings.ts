import { SIGNING_KEY, SIGNING_KEY_RULE, SIGNING_KEYS_MAX } from '@latchkey/contract/release';
import { z } from 'zod';
import { list } from '../routing/list.ts';
import { defineRoute, type RouteContext } from '../routing/route.ts';
import { changeOf } from '../routing/schemas.ts';

const URL = '/api/v1/panel/release-settings';

const fields = {
  publicUpdates: z.boolean().meta({ description: 'True if update feeds need no key.' }),
  signingKeys: list(z.string().regex(SIGNING_KEY, SIGNING_KEY_RULE), 0, SIGNING_KEYS_MAX).meta({
    description: 'Minisign public keys. With one at least, each artifact of a release needs a signature by one of them.',
    examples: [['RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3']],
  }),
};

const settings = z.object(fields).meta({ id: 'ReleaseSettings' });

export function releaseSettingRoutes({ clients: { releases } }: RouteContext) {
  return {
    getReleaseSettings: defineRoute(`GET ${URL}`, 'files:read', {
      application: 'query',
      summary: 'Get the release settings of an application',
      data: settings,
      message: 'Successfully fetched release settings.',
      handle: async ({ application }) => (await releases.getReleaseSettings(application)).settings,
    }),
    updateReleaseSettings: defineRoute(`PATCH ${URL}`, 'releases:write', {
      application: 'query',
      summary: 'Change the release settings of an application',
      description: 'Changes the given properties. `signingKeys` is the whole new list.',
      body: changeOf(fields),
      examples: { publicUpdates: { publicUpdates: true } },
      data: settings,
      message: 'Release settings updated.',
      handle: async ({ application, body: { publicUpdates, signingKeys } }) => {
        const given = {
          ...(publicUpdates !== undefined && { publicUpdates }),
          ...(signingKeys && { signingKeys: { keys: signingKeys } }),
        };
        return (await releases.updateReleaseSettings({ ...application, ...given })).settings;
      },
    }),
  };
}
