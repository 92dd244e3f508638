import type { ApplicationFrames, ReadyFrame } from './messages.ts';

const APPLICATION_ID = '019a9e3c-52f0-7c41-b0f3-6d1a8e5f2b90';

const ready: ReadyFrame = {
  specversion: '1.0',
  id: '019a9e41-0b7d-7a06-9f52-3c8e1d4b7a15',
  source: `/applications/${APPLICATION_ID}`,
  type: 'latchkey.connection.ready',
  time: '2026-05-12T09:00:00.000Z',
  datacontenttype: 'application/json',
  data: {
    applicationId: APPLICATION_ID,
    name: 'Difference Engine',
    status: 'online',
    version: '1.0',
    lastSequence: '6',
    resumed: false,
  },
};

/** Those of `ready` but for what tells one event from another. */
const common = { specversion: '1.0', source: ready.source, datacontenttype: 'application/json' } as const;

const application: ApplicationFrames = {
  versionChanged: {
    ...common,
    id: '019a9e41-9c18-7e33-8a6d-0f9b2c5d8e71',
    type: 'latchkey.application.version_changed',
    time: '2026-05-12T09:00:37.016Z',
    sequence: '7',
    data: { version: '1.1', previousVersion: '1.0' },
  },
  paused: {
    ...common,
    id: '019a9e42-6a55-73d8-bb04-5e7a9c1f3d26',
    type: 'latchkey.application.paused',
    time: '2026-05-12T09:01:29.813Z',
    sequence: '8',
    data: { status: 'paused' },
  },
  resumed: {
    ...common,
    id: '019a9e43-7f02-7b9c-a1e8-4d6c0b2f5e83',
    type: 'latchkey.application.resumed',
    time: '2026-05-12T09:02:40.642Z',
    sequence: '9',
    data: { status: 'online' },
  },
  deleted: {
    ...common,
    id: '019a9e45-1d4e-7280-9c37-8b5f6e0a1d94',
    type: 'latchkey.application.deleted',
    time: '2026-05-12T09:04:26.702Z',
    sequence: '10',
    data: {},
  },
};

/** An example of each frame: one session, in order of `sequence`. */
export const EXAMPLES = { ready, ...application };
