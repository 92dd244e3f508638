import { findTrailerError } from '@connectrpc/connect/protocol-grpc';
import { Client, credentials, Metadata, type ServiceError, status } from '@grpc/grpc-js';
import { ApplicationService } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { expect, it, onTestFinished } from 'vitest';
import { defineErrors, fromConnectError } from '../../errors/errors.ts';
import { DELETE_APPLICATION } from '../../testing/http2.ts';
import { AUTHORIZATION, startTestServer, testRoute } from '../../testing/servers.ts';

const message = 'First, second: 100 % of „them“, %2C and\nall';
const errors = defineErrors({ odd: { kind: 'conflict', message } });

it('grpc-js gets the status of a rejection, and a domain error with its details and message', async () => {
  const deleteApplication = () => Promise.reject(errors.odd({ policy: 'odd', limit: 1, windowMs: 0, retryMs: 2_000 }));
  const { grpcUrl } = await startTestServer([testRoute(ApplicationService, { deleteApplication })]);
  const client = new Client(new URL(grpcUrl).host, credentials.createInsecure());
  onTestFinished(() => client.close());
  const call = (authorization: string) => {
    const metadata = new Metadata();
    metadata.set('authorization', authorization);
    const { promise, resolve } = Promise.withResolvers<ServiceError | null>();
    client.makeUnaryRequest(DELETE_APPLICATION, Buffer.from, Buffer.from, [], metadata, resolve);
    return promise;
  };
  expect(await call('Bearer wrong')).toMatchObject({ code: status.UNAUTHENTICATED });
  const err = await call(AUTHORIZATION);
  expect(err).toMatchObject({ code: status.ALREADY_EXISTS, details: message });
  const trailer = new Headers({ 'grpc-status': String(err?.code) });
  for (const value of err?.metadata.get('grpc-status-details-bin') ?? []) {
    trailer.set('grpc-status-details-bin', (value as Buffer).toString('base64'));
  }
  expect(fromConnectError(findTrailerError(trailer))).toMatchObject({ reason: 'odd', metadata: { policy: 'odd' } });
});
