/** Path of the endpoint (decisions 10). */
export const REALTIME_PATH = '/api/v1/realtime';

/** The sub-protocol of the CloudEvents WebSocket binding: one event in JSON is one text frame. */
export const CLOUDEVENTS_PROTOCOL = 'cloudevents.json';

/** Prefix of a socket key that is offered as a sub-protocol. */
export const BEARER_PROTOCOL_PREFIX = 'bearer.';

/** Largest message of a client; a larger one closes the connection with 1009 (decisions 10). */
export const CLIENT_FRAME_BYTES_MAX = 4_096;
