import { BEARER_PROTOCOL_PREFIX, CLOUDEVENTS_PROTOCOL, REALTIME_PATH } from '../protocol.ts';
import { CLOSE_CODES } from './close-codes.ts';
import { CHANNEL_DESCRIPTION, INFO_DESCRIPTION } from './descriptions.ts';
import { describeMessages } from './message-objects.ts';
import { REFUSALS } from './refusals.ts';

const SEQUENCE = { type: 'string', pattern: '^(0|[1-9][0-9]*)$' };
const LAST_EVENT_ID = '`sequence` of the last event that the client knows. What came after follows `ready`.';

const ref = (...path: string[]) => ({ $ref: `#/${path.join('/')}` });

/**
 * The AsyncAPI 3.0 document of the endpoint, from the schemas of its frames and the tables of its answers.
 *
 * @param serverUrl where clients reach the service, such as `wss://live.example.com`; the path of the endpoint follows it
 */
export function asyncApiDocument(serverUrl: string) {
  const messages = describeMessages();
  return {
    asyncapi: '3.0.0',
    info: { title: 'Latchkey live events', version: '1', description: INFO_DESCRIPTION },
    defaultContentType: 'application/cloudevents+json',
    servers: { realtime: describeServer(new URL(serverUrl)) },
    channels: { realtime: describeChannel(Object.keys(messages)) },
    operations: {
      sendReady: {
        action: 'send',
        summary: 'How the application stands, as the first frame on every connection',
        channel: ref('channels', 'realtime'),
        messages: [ref('channels', 'realtime', 'messages', 'ready')],
      },
      sendEvent: {
        action: 'send',
        summary: 'What happens to the application, in order of `sequence`',
        channel: ref('channels', 'realtime'),
        messages: Object.keys(messages)
          .filter((name) => name !== 'ready')
          .map((name) => ref('channels', 'realtime', 'messages', name)),
      },
    },
    components: { securitySchemes: SECURITY_SCHEMES, messages },
  };
}

const SECURITY_SCHEMES = {
  socketKey: {
    type: 'http',
    scheme: 'bearer',
    bearerFormat: 'lk_sock_…',
    description: 'The application’s socket key: `Authorization: Bearer lk_sock_…`.',
  },
  socketKeyAsSubProtocol: {
    type: 'httpApiKey',
    in: 'header',
    name: 'Sec-WebSocket-Protocol',
    description: `For browsers, which can’t set \`Authorization\`: the sub-protocols \`${CLOUDEVENTS_PROTOCOL}\` and \`${BEARER_PROTOCOL_PREFIX}lk_sock_…\`, as \`new WebSocket(url, ['${CLOUDEVENTS_PROTOCOL}', '${BEARER_PROTOCOL_PREFIX}lk_sock_…'])\`. The first is the one chosen.`,
  },
};

function describeServer({ host, protocol, pathname }: URL) {
  return {
    host,
    protocol: protocol.replace(/:$/, '').replace(/^http/, 'ws'),
    ...(pathname !== '/' && { pathname: pathname.replace(/\/$/, '') }),
    description: 'The realtime service. Any number of nodes; each sends every event.',
    security: Object.keys(SECURITY_SCHEMES).map((name) => ref('components', 'securitySchemes', name)),
  };
}

function describeChannel(messageNames: readonly string[]) {
  return {
    address: REALTIME_PATH,
    title: 'Live events of one application',
    description: CHANNEL_DESCRIPTION,
    servers: [ref('servers', 'realtime')],
    messages: Object.fromEntries(messageNames.map((name) => [name, ref('components', 'messages', name)])),
    bindings: {
      ws: {
        method: 'GET',
        query: { type: 'object', properties: { lastEventId: { ...SEQUENCE, description: `As the header. ${LAST_EVENT_ID}` } } },
        headers: {
          type: 'object',
          properties: {
            'Last-Event-ID': { ...SEQUENCE, description: LAST_EVENT_ID },
            Authorization: { type: 'string', description: '`Bearer lk_sock_…`' },
            'Sec-WebSocket-Protocol': {
              type: 'string',
              description: `\`${CLOUDEVENTS_PROTOCOL}\`, and in browsers \`${BEARER_PROTOCOL_PREFIX}lk_sock_…\` beside it`,
            },
          },
        },
        bindingVersion: '0.1.0',
      },
    },
    'x-close-codes': CLOSE_CODES,
    'x-refusals': REFUSALS,
  };
}
