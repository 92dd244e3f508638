import { subscribe } from 'node:diagnostics_channel';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { anyPack } from '@bufbuild/protobuf/wkt';
import type { HandlerContext } from '@connectrpc/connect';
import type { RpcRoute } from '../../rpc/route.ts';
import { startRpcServer } from '../../rpc/server/server.ts';
import { memoryLogger } from '../memory-logger.ts';
import { readMessages, type SuiteMessage, suiteService, suiteType, writeMessage } from './messages.ts';

const CREDENTIAL = 'conformance';
const CASE_HEADER = 'x-test-case-name';
const responses = new Map<string, ServerResponse>();

// The suite presents no credential, and our handlers set no headers: both are added around them.
subscribe('http.server.request.start', (event) => {
  const { request, response } = event as { request: IncomingMessage; response: ServerResponse };
  request.headers.authorization = `Bearer ${CREDENTIAL}`;
  responses.set(String(request.headers[CASE_HEADER]), response);
});

async function unary(input: SuiteMessage, context: HandlerContext) {
  const { responseDefinition: definition } = input;
  const header = context.requestHeader;
  const response = responses.get(header.get(CASE_HEADER) ?? '');
  for (const { name, value } of definition?.responseHeaders ?? []) response?.setHeader(name, value);
  for (const { name, value } of definition?.responseTrailers ?? []) response?.setHeader(`trailer-${name}`, value);
  await delay(definition?.responseDelayMs ?? 0);
  const requestInfo = {
    requestHeaders: [...header].map(([name, value]) => ({ name, value: value.split(', ') })),
    requests: [anyPack(suiteType('UnaryRequest'), input)],
    ...(header.has('connect-timeout-ms') && { timeoutMs: BigInt(context.timeoutMs() ?? 0) }),
  };
  return { payload: { data: definition?.response.value, requestInfo } };
}

for await (const _request of readMessages('ServerCompatRequest')) {
  const { port } = await startRpcServer({
    routes: [{ service: suiteService(), impl: { unary } as unknown as RpcRoute['impl'] }],
    logger: memoryLogger().logger,
    credentials: [CREDENTIAL],
    checkReady: async () => undefined,
    host: '127.0.0.1',
    port: 0,
    grpcPort: 0,
  });
  writeMessage('ServerCompatResponse', { host: '127.0.0.1', port });
}
