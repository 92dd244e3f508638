/** Close codes of this service (RFC 6455, 7.4.1). */
export const CLOSE = {
  goingAway: { code: 1001, reason: 'reconnect after a random delay' },
  binaryFrame: { code: 1003, reason: 'binary messages are not supported' },
  applicationDeleted: { code: 4102, reason: 'application deleted' },
  keyRotated: { code: 4103, reason: 'socket key rotated' },
  sendsTooMuch: { code: 4201, reason: 'too many frames' },
  readsTooSlowly: { code: 4202, reason: 'reads too slowly' },
} as const;

export type Close = (typeof CLOSE)[keyof typeof CLOSE];
