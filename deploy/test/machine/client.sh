# shellcheck shell=bash
# Sourced in a checkout of the machine: what clients do, by the commands of the documents.
# Arguments: account, command, its arguments. GATEWAY is its URL, CREDENTIAL a service's, APPS and
# FILES are addresses.
set -euo pipefail
account=$1
export TMPDIR=$HOME/client
# Continues the session of the account.
[ ! -e "$TMPDIR/$account" ] || . "$TMPDIR/$account"

# The block of a document that has a text.
block_with() { # document, text
  TEXT=$2 perl -0777 -ne 'print grep { index($_, $ENV{TEXT}) >= 0 } /^```(?:sh|yaml)\n(.*?)^```/gms' "$1"
}

fetch() { curl --fail-with-body --silent --show-error "$@"; }
command_line() { LATCHKEY_URL=$BASE LATCHKEY_KEY=$KEY npx latchkey "$@"; }

# README's first session with curl, up to the listener.
start_session() {
  mkdir -p "$TMPDIR"
  eval "$(block_with README.md '# Listen as its clients do' |
    sed "s/\"ada\"/\"$account\"/; s/\"ada@/\"$account@/; s|^BASE=.*|BASE=$GATEWAY|; /^# Listen/,\$d")"
  HTTP_KEY=$(jq -r '.data[0].applicationApiKeys.httpKey' "$DIR/applications.json")
  declare -p BASE DIR KEY APP SOCKET_KEY HTTP_KEY CSRF > "$TMPDIR/$account"
  [[ $KEY = lk_mgmt_* ]]
}

# The last command of that session.
listener() { export SOCKET_KEY; timeout 600 bash -c "$(block_with README.md '# Listen as its clients do' | tail -n 1)" 2>&1; }
listen() {
  listener > "$TMPDIR/listened" &
  # The first command in a checkout installs its packages.
  within 600 grep '#1  latchkey.application.paused  {"status":"paused"}' "$TMPDIR/listened"
  command_line apps resume 'Difference Engine'
  within 5 grep '#2  latchkey.application.resumed  {"status":"online"}' "$TMPDIR/listened"
}
hear() { grep --max-count "$1" "$2" <(listener); } # how many events, type

upload_avatar() { # file
  command=$(block_with docs/avatars.md @me.jpg)
  cd "$DIR"
  eval "${command/me.jpg/$1}" | grep avatarUrl
}

upload() { # file, name, options of curl
  fetch -X POST -T "$1" "${@:3}" -H "Authorization: Bearer $KEY" -H 'Content-Type: application/octet-stream' \
    "$BASE/api/v1/panel/upload-file?applicationId=$APP&fileName=$2"
}

read_concurrently() { # requests
  fetch --parallel --parallel-max 64 -H "Authorization: Bearer $KEY" \
    "$BASE/api/v1/panel/get-application-settings?applicationId=$APP&x=[1-$1]" > /dev/null
}

# Until it is interrupted, for an hour at most.
read_steadily() { # requests a second
  vegeta attack -rate "$1" -duration 1h -timeout 5s <<< "GET $BASE/api/v1/panel/get-application-settings?applicationId=$APP
Authorization: Bearer $KEY"
}

# Commands that need a session.
with_password() { LATCHKEY_URL=$BASE npx latchkey "$@" --email "$account@example.com" --password-stdin <<< 'analytical engine'; }
# By the commands of docs/ci.md, with the keys of this cluster.
trust_cluster() {
  commands=$(block_with docs/ci.md /openid/v1/jwks)
  eval "${commands/latchkey/with_password}"
}

# Sockets of the application that reconnect.
hold_sockets() { # how many, seconds
  URL=$LATCHKEY_REALTIME_URL KEY=$SOCKET_KEY node --eval '
    const [count, seconds] = process.argv.slice(1);
    const open = () =>
      new WebSocket(process.env.URL, ["cloudevents.json", `bearer.${process.env.KEY}`]).onclose = () => setTimeout(open, 1000);
    for (let each = 0; each < count; each++) open();
    setTimeout(process.exit, seconds * 1000);
  ' "$@"
}

# Reads with a new key, and prints how many had which status. Then revokes the key, and prints the
# code of each gateway.
exhaust_and_revoke() { # requests, addresses of gateways
  keys=(-b "$DIR/jar" -H "X-CSRF-Token: $CSRF" -H 'Content-Type: application/json' "$BASE/api/v1/panel/api-keys")
  key=$(fetch "${keys[@]}" -d '{"name": "other", "allApplications": true, "scopes": ["applications:read"]}')
  read_all=(-H "Authorization: Bearer $(jq -r .data.plaintextKey <<< "$key")")
  curl --parallel --parallel-max 32 --silent --output /dev/null --write-out '%{http_code}\n' "${read_all[@]}" \
    "$BASE/api/v1/panel/get-applications?x=[1-$1]" | sort | uniq -c
  fetch -X POST "${keys[@]/%api-keys/api-keys/$(jq -r .data.id <<< "$key")/revoke}" > /dev/null
  for address in "${@:2}"; do
    curl --silent "${read_all[@]}" "http://$address:8080/api/v1/panel/get-applications" | jq -r .code
  done
}

# By the example of docs/grpc.md. URLs are for clients: they work outside the containers.
download() {
  LATCHKEY_CREDENTIAL=$CREDENTIAL LATCHKEY_APPS=$APPS:9082 LATCHKEY_FILES=$FILES:9084 \
    node_modules/.bin/node examples/grpc/download-url.ts "$HTTP_KEY" > "$TMPDIR/url"
  fetch "$(tail -n 1 "$TMPDIR/url")" | grep 'a release'
}

# The commands of docs/grpc.md without TLS, with real ids. The last one creates a download URL.
call_services() {
  local APPS_GRPC=$APPS:9082 APPS_CONNECT=http://$APPS:8082 FILES_CONNECT=http://$FILES:8084
  ids="s/lk_sock_…/$SOCKET_KEY/; s/lk_http_…/$HTTP_KEY/; s/\(applicationId\": \"\)…/\1$APP/"
  ids+="; s/\(accountId\": \"\)…/\1$(fetch -b "$DIR/jar" "$BASE/api/v1/auth/session" | jq -r .data.account.id)/"
  ids+="; s/\(fileId\": \"\)…/\1$(fetch -H "Authorization: Bearer $KEY" \
    "$BASE/api/v1/panel/get-files-table?applicationId=$APP&currentPage=1" | jq -r '.data[0].id')/"
  commands=$(block_with docs/grpc.md 'grpcurl -plaintext' | sed "1,/^\$/d; /^# With TLS/,/^\$/d; $ids")
  eval "${commands//curl \$/fetch \$}" | tee "$TMPDIR/calls"
  grep --quiet '"name": "Difference Engine"' "$TMPDIR/calls"
  grep --quiet '"status": "SERVING"' "$TMPDIR/calls"
  fetch "$(sed -n 's/.*"url":"\([^"]*\)".*/\1/p' "$TMPDIR/calls")" | grep 'a release'
}

call_over_tls() {
  command=$(block_with docs/grpc.md 'grpcurl -plaintext' | sed -n "/^# With TLS/,/^\$/s/lk_sock_…/$SOCKET_KEY/; /^# With TLS/,/^\$/p")
  cd /root/tls
  fails eval "${command/-cert tls.crt -key tls.key}"
  eval "$command" | tee --append /dev/stderr | grep '"name": "Difference Engine"'
}

# Data left by the first session and the avatar.
find_data() {
  fetch -H "Authorization: Bearer $KEY" "$BASE/api/v1/panel/get-application-settings?applicationId=$APP" > /dev/null
  fetch -b "$DIR/jar" "$BASE/api/v1/panel/avatar" --output "$TMPDIR/avatar"
  grep --text --quiet WEBP "$TMPDIR/avatar"
  download > /dev/null
  echo 'session, key, application, avatar and file'
}

"${@:2}"
