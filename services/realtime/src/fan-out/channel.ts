const PREFIX = 'latchkey:realtime:';

/** What is published where no frame is: that the application is to be looked at. */
export const LOOK = 'look';

/** The Redis channel on which nodes hear of an application. */
export const channelOf = (applicationId: string): string => PREFIX + applicationId;

/** The application of a channel. */
export const applicationOf = (channel: string): string => channel.slice(PREFIX.length);
