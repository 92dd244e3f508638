// What a program does that serves the files of licensed applications: a client shows its
// application's HTTP key, and is told where to fetch the newest file. With a credential, and the
// addresses of the gRPC ports as `npm start -- --deployed` prints them, on the Node.js 24 that
// the first `npm start` fetches:
//
//   LATCHKEY_CREDENTIAL=… LATCHKEY_APPS=localhost:9082 LATCHKEY_FILES=localhost:9084 \
//     node_modules/.bin/node examples/grpc/download-url.ts lk_http_…
//
// Where there is TLS between services: LATCHKEY_TLS_CA, LATCHKEY_TLS_CERT and LATCHKEY_TLS_KEY,
// paths of files in PEM, all three. With none of them the credential goes in clear.
import { randomUUID } from 'node:crypto';
import { accessSync, constants } from 'node:fs';
import { connectService, LatchkeyError, type TlsFiles } from './latchkey-client.ts';

interface Application {
  applicationId: string;
  accountId: string;
  name: string;
}

interface FilePage {
  files: Array<{ id: string; displayName: string }>;
}

const say = (line: string) => process.stdout.write(`${line}\n`);
const complain = (line: string) => process.stderr.write(`${line}\n`);

const { LATCHKEY_CREDENTIAL: credential, LATCHKEY_APPS: appsAddress, LATCHKEY_FILES: filesAddress } = process.env;
const { LATCHKEY_TLS_CA: ca, LATCHKEY_TLS_CERT: cert, LATCHKEY_TLS_KEY: key } = process.env;
const [httpKey] = process.argv.slice(2);
if (!credential || !appsAddress || !filesAddress || !httpKey) {
  complain('Set LATCHKEY_CREDENTIAL, LATCHKEY_APPS and LATCHKEY_FILES, and give an HTTP key.');
  process.exit(2);
}
// With one of them misspelt, the credential would go in clear where somebody meant it not to.
if ((ca || cert || key) && !(ca && cert && key)) {
  complain('Set all of LATCHKEY_TLS_CA, LATCHKEY_TLS_CERT and LATCHKEY_TLS_KEY, or none.');
  process.exit(2);
}

for (const file of [ca, cert, key]) {
  try {
    if (file) accessSync(file, constants.R_OK);
  } catch (err) {
    complain(`${file} can't be read (${(err as NodeJS.ErrnoException).code}).`);
    process.exit(2);
  }
}

const tls: { tls?: TlsFiles } = ca && cert && key ? { tls: { ca, cert, key } } : {};
const apps = connectService({ service: 'latchkey.apps.v1.ApplicationService', address: appsAddress, credential, ...tls });
const files = connectService({ service: 'latchkey.files.v1.FileService', address: filesAddress, credential, ...tls });
// One id for all that is done for one request.
const requestId = randomUUID();
try {
  const { applicationId, accountId, name } = await apps.call<Application>('LookUpApplication', { httpKey }, { requestId });
  const { files: found } = await files.call<FilePage>('ListFiles', { accountId, applicationId, pageSize: 1 }, { requestId });
  const [newest] = found;
  if (!newest) {
    say(`${name} has no files.`);
  } else {
    const request = { accountId, applicationId, fileId: newest.id, lifetimeSeconds: 60 };
    const { url } = await files.call<{ url: string }>('CreateDownloadUrl', request, { requestId });
    say(`${name}: ${newest.displayName}\n${url}`);
  }
} catch (err) {
  if (!(err instanceof LatchkeyError)) throw err;
  // Decide by the reason; the message is for people.
  complain(
    err.reason === 'runtime_key_invalid' ? 'There is no application with this key.' : `${err.message} (request ${requestId})`,
  );
  process.exitCode = 1;
} finally {
  apps.close();
  files.close();
}
