// Serves the files of licensed applications: finds an application by its HTTP key and creates a
// download URL of its newest file. `npm start -- --deployed` prints the addresses of gRPC ports.
//
//   LATCHKEY_CREDENTIAL=… LATCHKEY_APPS=localhost:9082 LATCHKEY_FILES=localhost:9084 \
//     node_modules/.bin/node examples/grpc/download-url.ts lk_http_…
//
// With TLS between services, LATCHKEY_TLS_CA, LATCHKEY_TLS_CERT and LATCHKEY_TLS_KEY are the paths
// of PEM files. Without them, the credential is sent in clear text.
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

const fail: (line: string) => never = (line) => {
  process.stderr.write(`${line}\n`);
  process.exit(2);
};

const { LATCHKEY_CREDENTIAL: credential, LATCHKEY_APPS: appsAddress, LATCHKEY_FILES: filesAddress } = process.env;
const { LATCHKEY_TLS_CA: ca, LATCHKEY_TLS_CERT: cert, LATCHKEY_TLS_KEY: key } = process.env;
const [httpKey] = process.argv.slice(2);
if (!credential || !appsAddress || !filesAddress || !httpKey) {
  fail('Set LATCHKEY_CREDENTIAL, LATCHKEY_APPS and LATCHKEY_FILES, and give an HTTP key.');
}
// With a misspelt name, the credential would be sent in clear text unintentionally.
if ((ca || cert || key) && !(ca && cert && key)) {
  fail('Set all of LATCHKEY_TLS_CA, LATCHKEY_TLS_CERT and LATCHKEY_TLS_KEY, or none.');
}

for (const file of [ca, cert, key]) {
  try {
    if (file) accessSync(file, constants.R_OK);
  } catch (err) {
    fail(`${file} can't be read (${(err as NodeJS.ErrnoException).code}).`);
  }
}

const tls: { tls?: TlsFiles } = ca && cert && key ? { tls: { ca, cert, key } } : {};
const apps = connectService({ service: 'latchkey.apps.v1.ApplicationService', address: appsAddress, credential, ...tls });
const files = connectService({ service: 'latchkey.files.v1.FileService', address: filesAddress, credential, ...tls });
// One id for all calls of one request.
const requestId = randomUUID();
try {
  const { applicationId, accountId, name } = await apps.call<Application>('LookUpApplication', { httpKey }, { requestId });
  const { files: found } = await files.call<FilePage>('ListFiles', { accountId, applicationId, pageSize: 1 }, { requestId });
  const [newest] = found;
  if (!newest) {
    process.stdout.write(`${name} has no files.\n`);
  } else {
    const request = { accountId, applicationId, fileId: newest.id, lifetimeSeconds: 60 };
    const { url } = await files.call<{ url: string }>('CreateDownloadUrl', request, { requestId });
    process.stdout.write(`${name}: ${newest.displayName}\n${url}\n`);
  }
} catch (err) {
  if (!(err instanceof LatchkeyError)) throw err;
  // Programs decide by the reason; the message is for people.
  const isUnknownKey = err.reason === 'runtime_key_invalid';
  process.stderr.write(isUnknownKey ? 'There is no application with this key.\n' : `${err.message} (request ${requestId})\n`);
  process.exitCode = 1;
} finally {
  apps.close();
  files.close();
}
