import { defineErrors } from '@latchkey/kit/errors/errors';

/** What the endpoint refuses before it upgrades (decisions 10). */
export const errors = defineErrors({
  socket_key_invalid: { kind: 'unauthenticated', code: 'api_key_invalid', message: 'The socket key is not valid' },
  too_many_refusals: { kind: 'rate_limited', message: 'Too many refused connections from this address' },
  too_many_sockets_of_application: { kind: 'rate_limited', message: 'Too many connections of this application' },
  too_many_sockets_of_address: { kind: 'rate_limited', message: 'Too many connections from this address' },
  node_full: { kind: 'unavailable', message: 'There is no room for another connection here' },
  node_stopping: { kind: 'unavailable', message: 'This node is stopping' },
  handshake_invalid: {
    kind: 'invalid',
    message: 'The WebSocket handshake is not valid',
    rule: 'must be a WebSocket handshake of version 13',
  },
  protocol_unknown: {
    kind: 'invalid',
    message: 'Of the sub-protocols, only cloudevents.json is spoken here',
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
  method_not_allowed: { kind: 'method_not_allowed', message: 'The method is not allowed here', rule: 'must use the method GET' },
});
