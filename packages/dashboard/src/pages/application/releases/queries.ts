import { queryOptions } from '@tanstack/react-query';
import { latchkey } from '../../../api/client.ts';

/** The releases of an application, newest first. */
export const releasesQuery = (applicationId: string) =>
  queryOptions({
    queryKey: ['releases', applicationId],
    queryFn: ({ signal }) => latchkey.releases.list(applicationId, { signal }),
  });

/** The signing keys of an application, and whether its feeds need no key. */
export const releaseSettingsQuery = (applicationId: string) =>
  queryOptions({
    queryKey: ['release-settings', applicationId],
    queryFn: ({ signal }) => latchkey.releases.settings(applicationId, { signal }),
  });
