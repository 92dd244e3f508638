import { defineErrors } from '@latchkey/kit/errors/errors';

export const errors = defineErrors({
  socket_key_invalid: { kind: 'unauthenticated', code: 'api_key_invalid', message: 'The socket key is not valid' },
  too_many_rejections: { kind: 'rate_limited', message: 'Too many rejected connections from this address' },
  too_many_sockets_of_application: { kind: 'rate_limited', message: 'Too many connections of this application' },
  too_many_sockets_of_address: { kind: 'rate_limited', message: 'Too many connections from this address' },
  node_full: { kind: 'unavailable', message: 'Connection limit of this server reached. Try again later' },
  node_busy: { kind: 'unavailable', message: 'Too many clients connect to this server. Try again later' },
  node_stopping: { kind: 'unavailable', message: 'This server is stopping. Try again' },
  handshake_invalid: {
    kind: 'invalid',
    message: 'The WebSocket handshake is not valid',
    rule: 'must be a WebSocket handshake of version 13',
  },
  protocol_unknown: {
    kind: 'invalid',
    message: 'The only supported sub-protocol is cloudevents.json',
    path: 'header.sec-websocket-protocol',
    rule: 'must offer cloudevents.json',
  },
  upgrade_required: {
    kind: 'invalid',
    message: 'This is a WebSocket endpoint',
    path: 'header.upgrade',
    rule: 'must be websocket',
  },
  route_not_found: { kind: 'not_found', message: 'Not found' },
  method_not_allowed: { kind: 'method_not_allowed', message: 'Method not allowed', rule: 'must use the method GET' },
});
