import type { Redis } from '@latchkey/kit/redis';

const PREFIX = 'latchkey:realtime:';

/** What is published where no frame is: that the application is to be looked at. */
export const LOOK = 'look';

/** The Redis channel on which nodes hear of an application. Redis has one set of channels for all its databases, so that the database is part of the name. */
export const channelOf = ({ options }: Pick<Redis, 'options'>, applicationId: string): string =>
  `${PREFIX}${options.db ?? 0}:${applicationId}`;

/** The application of a channel. */
export const applicationOf = (channel: string): string => channel.slice(channel.lastIndexOf(':') + 1);
