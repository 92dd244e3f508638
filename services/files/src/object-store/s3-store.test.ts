import { startFauxqs } from 'fauxqs';
import { describeS3Store } from './testing/s3-contract.ts';

const fauxqs = await startFauxqs({ port: 0, host: '127.0.0.1', logger: false });

describeS3Store('an S3 store', {
  server: {
    endpoint: `http://127.0.0.1:${fauxqs.port}`,
    accessKeyId: 'any',
    secretAccessKey: 'not-looked-at',
    listsUnfinished: false,
    readsUrls: false,
  },
  stop: () => fauxqs.stop(),
});
