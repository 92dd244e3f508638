import { APPLICATION_NAME, describeLength } from '@latchkey/contract/lengths';
import { z } from 'zod';
import type { Principal } from '../authentication/credential.ts';
import type { Clients } from '../clients.ts';
import { errors } from '../errors.ts';
import { isOwned } from '../routing/resolve-application.ts';
import { component, defineRoute, type RouteContext } from '../routing/route.ts';
import { applicationId, EXAMPLE_IDS, idOf, nameText, timestamp } from '../routing/schemas.ts';
import { SETTINGS_URL } from './application-settings.ts';

const previousKey = z
  .object({
    expiresAt: timestamp,
    lastUsedAt: timestamp.nullable().meta({ description: 'Last use since the rotation, at most a minute old.' }),
  })
  .meta({ id: 'PreviousRuntimeKey', description: 'A rotated key that is still accepted.' });

const runtimeKeys = z
  .object({
    socketKey: z.string().meta({ examples: ['lk_sock_2Yq8VwFhT3mZ6RbNcK9xLpD4sGjA7eUt'] }),
    httpKey: z.string().meta({ examples: ['lk_http_7Hn3XkQvB5tJ9WyEzM2cRfS8aPgD4uLq'] }),
    updatedAt: timestamp,
    previousSocketKey: previousKey.optional(),
    previousHttpKey: previousKey.optional(),
  })
  .meta({ id: 'RuntimeKeys', description: 'What licensed applications authenticate with.' });

const application = component('Application', {
  id: idOf('application', 'Application id.'),
  name: z.string().meta({ examples: ['Photo Editor'] }),
  applicationApiKeys: runtimeKeys,
});

export const applicationRoutes = ({ clients }: RouteContext) => ({
  listApplications: defineRoute('GET /api/v1/panel/get-applications', 'applications:read', {
    summary: 'List applications',
    description: 'All applications of the account, oldest first; for a restricted key, only those it may use.',
    isLarge: true,
    data: z.array(application),
    message: 'Successfully fetched applications',
    handle: ({ principal }) => listAll(clients, principal),
  }),
  createApplication: defineRoute('POST /api/v1/panel/create-application', 'applications:create', {
    summary: 'Create an application',
    description:
      'The key must have access to all applications. A new application is online, with version `1.0` and both runtime keys.',
    successHeaders: { Location: 'Path of `get-application-settings` for the new application.' },
    body: z.strictObject({
      name: nameText(
        APPLICATION_NAME,
        `Name, ${describeLength(APPLICATION_NAME)} without invisible ones and white space around. Names need not be unique.`,
      ),
    }),
    examples: { application: { name: 'Photo Editor' } },
    failures: ['application_forbidden'],
    message: 'Successfully create application',
    handle: async ({ principal, body, reply }) => {
      if (!principal.allApplications) throw errors.application_forbidden();
      const request = { accountId: principal.accountId, name: body.name };
      const { applicationId } = await clients.applications.createApplication(request);
      reply.header('location', `${SETTINGS_URL}?applicationId=${applicationId}`);
    },
  }),
  deleteApplication: defineRoute('DELETE /api/v1/panel/delete-application', 'applications:delete', {
    application: 'body',
    summary: 'Delete an application',
    description: [
      'The application is gone immediately; its live clients are notified and disconnected.',
      'With a session of an account that has two-factor authentication on, `code` is needed, and used up. Otherwise it is ignored: send an empty string.',
    ].join(' '),
    body: z.strictObject({
      applicationId,
      code: z.string().meta({ description: 'Code of the authenticator app, or a recovery code. Empty where none is needed.' }),
    }),
    examples: { withoutCode: { applicationId: EXAMPLE_IDS.application, code: '' } },
    failures: ['verifyTwoFactorCode'],
    message: 'Application deleted successfully',
    handle: async ({ principal: { kind, accountId }, application, body: { code } }) => {
      // A code is not used up for an application that does not exist, as on a repeated request.
      if (kind === 'session' && (await isOwned(clients, application)))
        await clients.twoFactor.verifyTwoFactorCode({ accountId, code });
      await clients.applications.deleteApplication(application);
    },
  }),
});

/** One call per 1,000 applications. */
async function listAll(clients: Clients, principal: Principal) {
  const filter = principal.allApplications ? {} : { filter: { applicationIds: [...principal.applicationIds] } };
  const all: unknown[] = [];
  let pageToken = '';
  do {
    const page = await clients.applications.listApplications({ accountId: principal.accountId, ...filter, pageToken });
    all.push(...page.applications.map(({ id, name, runtimeKeys }) => ({ id, name, applicationApiKeys: runtimeKeys })));
    pageToken = page.nextPageToken;
  } while (pageToken !== '');
  return all;
}
