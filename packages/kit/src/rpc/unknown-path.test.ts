import { Code, createClient } from '@connectrpc/connect';
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from '@connectrpc/connect-node';
import { Client, credentials, Metadata, status } from '@grpc/grpc-js';
import { ApplicationService } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { describe, expect, it, onTestFinished } from 'vitest';
import { startTestServer } from '../testing/servers.ts';

const UNIMPLEMENTED = { code: Code.Unimplemented, rawMessage: 'there is no such method' };

describe('a method that a server does not have', () => {
  it.each([
    ['Connect', (baseUrl: string) => createConnectTransport({ baseUrl, httpVersion: '1.1' })],
    ['gRPC-Web', (baseUrl: string) => createGrpcWebTransport({ baseUrl, httpVersion: '1.1' })],
  ])('is told as unimplemented to a client of %s', async (_title, transport) => {
    const { url } = await startTestServer([]);
    const { deleteApplication } = createClient(ApplicationService, transport(url));
    await expect(deleteApplication({})).rejects.toMatchObject(UNIMPLEMENTED);
  });

  it('is told as unimplemented to clients of gRPC, by the status of gRPC', async () => {
    const { grpcUrl } = await startTestServer([]);
    const { deleteApplication } = createClient(ApplicationService, createGrpcTransport({ baseUrl: grpcUrl }));
    await expect(deleteApplication({})).rejects.toMatchObject(UNIMPLEMENTED);
    const client = new Client(new URL(grpcUrl).host, credentials.createInsecure());
    onTestFinished(() => client.close());
    const asIs = (bytes: Buffer) => bytes;
    const failure = new Promise((resolve) =>
      client.makeUnaryRequest('/a.b/C', asIs, asIs, Buffer.alloc(0), new Metadata(), {}, resolve),
    );
    expect(await failure).toMatchObject({ code: status.UNIMPLEMENTED, details: UNIMPLEMENTED.rawMessage });
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
