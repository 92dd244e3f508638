import { Code, createClient } from '@connectrpc/connect';
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from '@connectrpc/connect-node';
import { ApplicationService } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { describe, expect, it } from 'vitest';
import { startTestServer } from '../testing/servers.ts';

describe('a method that a server does not have', () => {
  it.each([
    ['Connect', (baseUrl: string) => createConnectTransport({ baseUrl, httpVersion: '1.1' })],
    ['gRPC-Web', (baseUrl: string) => createGrpcWebTransport({ baseUrl, httpVersion: '1.1' })],
  ])('is told as unimplemented to a client of %s', async (_title, transport) => {
    const { url } = await startTestServer([]);
    const { deleteApplication } = createClient(ApplicationService, transport(url));
    await expect(deleteApplication({})).rejects.toMatchObject({
      code: Code.Unimplemented,
      rawMessage: 'there is no such method',
    });
  });

  it('is told as unimplemented to a client of gRPC', async () => {
    const { grpcUrl } = await startTestServer([]);
    const { deleteApplication } = createClient(ApplicationService, createGrpcTransport({ baseUrl: grpcUrl }));
    await expect(deleteApplication({})).rejects.toMatchObject({ code: Code.Unimplemented });
  });

  it.each([
    ['POST', '/latchkey.apps.v1.ApplicationService/Nope', 'application/json', '{}'],
    ['POST', '/latchkey.apps.v1.ApplicationService/Nope', 'text/plain', 'x'],
    ['POST', '/', 'application/json', '{'],
    ['GET', '/nope', undefined, undefined],
    ['GET', '/%', undefined, undefined],
  ])('is answered as an error of Connect: %s %s', async (method, path, type, body) => {
    const { url } = await startTestServer([]);
    const answer = await fetch(`${url}${path}`, {
      method,
      ...(type && { headers: { 'content-type': type } }),
      ...(body && { body }),
    });
    expect([answer.status, answer.headers.get('content-type'), await answer.json()]).toEqual([
      404,
      'application/json',
      { code: 'unimplemented', message: 'there is no such method' },
    ]);
  });
});
