import { randomUUID } from 'node:crypto';
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { createRouterTransport, type ServiceImpl } from '@connectrpc/connect';
import { defineErrors, toConnectError } from '@latchkey/kit/errors/errors';
import { newId } from '@latchkey/kit/validation/id';
import { Health, HealthCheckResponse_ServingStatus } from '@latchkey/proto/health/v1/health_pb';
import { ApplicationService, ApplicationStatus } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { ApplicationEventSchema } from '@latchkey/proto/latchkey/apps/v1/event_pb';
import type { LiveEvent } from '../frame/frame.ts';

type EventInit = NonNullable<MessageInitShape<typeof ApplicationEventSchema>['event']>;

export interface FakeApplication {
  readonly id: string;
  socketKey: string;
  previousKey?: { readonly text: string; readonly expiresAt: Date } | undefined;
  version: string;
  status: ApplicationStatus;
  isDeleted: boolean;
  readonly events: LiveEvent[];
  lastSequence: number;
}

const errors = defineErrors({ runtime_key_invalid: { kind: 'unauthenticated', code: 'api_key_invalid', message: 'no' } });

const newKey = () => `lk_sock_${randomUUID().replaceAll('-', '')}`;

/** Stands for the apps service: holds applications and their event log in memory. */
export class FakeApps {
  epoch = 'e1';
  readonly calls = { lookUp: 0, list: 0, states: 0 };
  /** Ids of the requests that the log was read for. */
  readonly listedFor: Array<string | null> = [];
  readonly transport;
  /** Runs before a read of the log; may wait or throw. */
  beforeList: (applicationId: string) => Promise<void> | void = () => undefined;
  readonly #applications: FakeApplication[] = [];
  #failure: Error | undefined;
  #gate: Promise<unknown> | undefined;

  constructor() {
    this.transport = createRouterTransport(({ service }) => {
      service(ApplicationService, this.#impl());
      service(Health, { check: () => ({ status: HealthCheckResponse_ServingStatus.SERVING }) });
    });
  }

  create(): FakeApplication {
    const application = { id: randomUUID(), socketKey: newKey(), version: '1.0', status: ApplicationStatus.ONLINE };
    this.#applications.push({ ...application, isDeleted: false, events: [], lastSequence: 0 });
    return this.#applications.at(-1) as FakeApplication;
  }

  /** Commits an event, and publishes nothing. */
  log(application: FakeApplication, event: EventInit): LiveEvent {
    application.lastSequence += 1;
    const body = create(ApplicationEventSchema, { event });
    const logged = { id: newId(), epoch: this.epoch, sequence: application.lastSequence, createdAt: new Date(), event: body };
    application.events.push(logged);
    if (event.case === 'deleted') application.isDeleted = true;
    if (event.case === 'paused') application.status = ApplicationStatus.PAUSED;
    if (event.case === 'resumed') application.status = ApplicationStatus.ONLINE;
    if (event.case === 'versionChanged') application.version = String(event.value.version);
    return logged;
  }

  /** Commits new versions, named after their sequences. */
  logVersions(application: FakeApplication, count: number): LiveEvent[] {
    return Array.from({ length: count }, () => {
      const version = `2.${application.lastSequence + 1}`;
      return this.log(application, { case: 'versionChanged', value: { version, previousVersion: application.version } });
    });
  }

  logVersion(application: FakeApplication): LiveEvent {
    return this.logVersions(application, 1)[0] as LiveEvent;
  }

  /** @param expiresAt end of the overlap; both keys open connections until then */
  rotate(application: FakeApplication, expiresAt?: Date): void {
    application.previousKey = expiresAt && { text: application.socketKey, expiresAt };
    application.socketKey = newKey();
  }

  trim(application: FakeApplication, upTo: number): void {
    application.events.splice(0, application.events.findLastIndex(({ sequence }) => sequence <= upTo) + 1);
  }

  failWith(err: Error | undefined): void {
    this.#failure = err;
  }

  /** Makes each response wait for the promise from now on. */
  waitFor(gate: Promise<unknown> | undefined): void {
    this.#gate = gate;
  }

  /** Holds responses back until the returned function is called. */
  hold(): () => void {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.waitFor(promise);
    return () => {
      if (this.#gate === promise) this.waitFor(undefined);
      resolve();
    };
  }

  async #respond<T>(make: () => T): Promise<T> {
    const made = make();
    await this.#gate;
    if (this.#failure) throw this.#failure;
    return made;
  }

  #impl(): Partial<ServiceImpl<typeof ApplicationService>> {
    return {
      lookUpApplication: ({ key }) =>
        this.#respond(() => {
          this.calls.lookUp += 1;
          const found = this.#applications.find(
            (app) => [app.socketKey, app.previousKey?.text].includes(key.value) && !app.isDeleted,
          );
          if (!found) throw toConnectError(errors.runtime_key_invalid());
          const { id: applicationId, status, version, lastSequence } = found;
          const facts = {
            applicationId,
            accountId: 'account',
            name: 'Engine',
            settings: { status, version },
            lastSequence: BigInt(lastSequence),
          };
          return { ...facts, epoch: this.epoch, keyFingerprint: key.value?.slice(-6) ?? '' };
        }),
      listApplicationEvents: async ({ applicationId, afterSequence, pageSize }, { requestHeader }) => {
        await this.beforeList(applicationId);
        return this.#respond(() => {
          this.calls.list += 1;
          this.listedFor.push(requestHeader.get('x-request-id'));
          const all = this.#applications.find(({ id }) => id === applicationId)?.events ?? [];
          const page = all.filter(({ sequence }) => sequence > Number(afterSequence)).slice(0, pageSize);
          const toMessage = ({ createdAt, sequence, ...event }: LiveEvent) => ({
            ...event,
            sequence: BigInt(sequence),
            createdAt: timestampFromDate(createdAt),
          });
          return { epoch: this.epoch, events: page.map(toMessage) };
        });
      },
      batchGetLiveStates: ({ applicationIds }) =>
        this.#respond(() => {
          this.calls.states += 1;
          const held = this.#applications.filter(({ id, isDeleted }) => applicationIds.includes(id) && !isDeleted);
          const states = held.map(({ id: applicationId, lastSequence, socketKey, previousKey }) => ({
            applicationId,
            epoch: this.epoch,
            lastSequence: BigInt(lastSequence),
            socketKeyFingerprint: socketKey.slice(-6),
            ...(previousKey &&
              previousKey.expiresAt > new Date() && {
                previousSocketKeyFingerprint: previousKey.text.slice(-6),
                previousSocketKeyExpiresAt: timestampFromDate(previousKey.expiresAt),
              }),
          }));
          return { states };
        }),
    };
  }
}
