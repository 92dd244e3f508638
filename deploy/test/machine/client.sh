#!/bin/bash
# What clients do, by the commands of the documents, in a checkout: client.sh COMMAND [ARGUMENT]...
set -euo pipefail
home=$HOME/client
mkdir -p "$home"

# The shell block of a document that has a text.
block_with() { # document, text
  TEXT=$2 awk '/^```sh/ { block = ""; inside = 1; next }
    /^```/ { if (inside && index(block, ENVIRON["TEXT"])) printf "%s", block; inside = 0 }
    inside { block = block $0 "\n" }' "$1"
}

# Continues the session of an account.
resume() { # account
  # shellcheck disable=SC1090
  . "$home/$1"
}

within() { # seconds, command
  local end=$((SECONDS + $1))
  shift
  until "$@"; do
    [ $SECONDS -lt $end ] || { echo "not within ${end} s: $*"; return 1; }
    sleep 0.2
  done
}

json() { curl --fail-with-body --silent --show-error --write-out '\n' -H 'Content-Type: application/json' "$@"; }

upload() { # account, file, name, options of curl
  resume "$1"
  curl --fail-with-body --silent --show-error -X POST -T "$2" "${@:4}" -H "Authorization: Bearer $KEY" \
    -H 'Content-Type: application/octet-stream' "$BASE/api/v1/panel/upload-file?applicationId=$APP&fileName=$3"
}

# README's first session up to the listener, for any account.
start_session() { # account
  local block
  block=$(block_with README.md 'Listen as its clients do')
  block=$(sed "s/\"ada\"/\"$1\"/; s/\"ada@/\"$1@/" <<< "${block%%# Listen*}")
  bash -euo pipefail -c "$block"$'\n'"declare -p BASE DIR KEY APP SOCKET_KEY CSRF | sed 's/^declare -- //' > '$home/$1'"
  cp -r "$(. "$home/$1" && echo "$DIR")" "$home/files-$1"
  sed -i "s|^DIR=.*|DIR=$home/files-$1|" "$home/$1"
  grep --quiet '^KEY="lk_mgmt_' "$home/$1"
}

# The last command of the first session; the event of the pause is in its past.
first_event() {
  local command
  command=$(block_with README.md 'Listen as its clients do' | grep 'npm run -s listen')
  resume ada
  LATCHKEY_SOCKET_KEY=$SOCKET_KEY npm run -s listen -- --help > /dev/null
  sed '/#1 /q' < <(SOCKET_KEY=$SOCKET_KEY timeout 60 bash -c "$command" 2>&1) | tee "$home/listened"
  grep --quiet '#1  latchkey.application.paused  {"status":"paused"}' "$home/listened"
}

set_status() { # status
  json -X PATCH "$BASE/api/v1/panel/update-application-settings?applicationId=$APP" -H "Authorization: Bearer $KEY" \
    -d "{\"field\": \"status\", \"value\": \"$1\"}"
}

# An event reaches a client that listens already.
live_event() { # status before, status after
  resume ada
  set_status "$1"
  LATCHKEY_SOCKET_KEY=$SOCKET_KEY timeout 60 npm run -s listen > "$home/listened" 2>&1 &
  within 20 grep --quiet Connected "$home/listened"
  set_status "$2"
  within 5 grep "{\"status\":\"$2\"}" "$home/listened"
  kill %1
}

upload_avatar() { # file
  resume ada
  cd "$home"
  cp "$1" me.jpg
  cp "$DIR/jar" jar
  # shellcheck disable=SC2034
  block_with "$OLDPWD/docs/avatars.md" '/upload-avatar' > avatar.sh
  . ./avatar.sh 2> avatar.log | tee /dev/stderr | grep --quiet avatarUrl
  echo
}

# As docs/grpc.md has it. The URL is for clients, so it works outside the containers.
download() { # address of apps, address of files
  local service=latchkey.files.v1.FileService/CreateDownloadUrl account file url
  resume ada
  account=$(json "http://$1:8082/latchkey.apps.v1.ApplicationService/LookUpApplication" \
    -H "Authorization: Bearer $CREDENTIAL" -d "{\"socketKey\": \"$SOCKET_KEY\"}" | jq -r .accountId)
  file=$(json "$BASE/api/v1/panel/get-files-table?applicationId=$APP&currentPage=1" \
    -H "Authorization: Bearer $KEY" | jq -r '.data[] | select(.displayName == "release.txt").id')
  url=$(json "http://$2:8084/$service" -H "Authorization: Bearer $CREDENTIAL" \
    -d "{\"accountId\": \"$account\", \"applicationId\": \"$APP\", \"fileId\": \"$file\", \"lifetimeSeconds\": 60}" | jq -r .url)
  curl --fail --silent --show-error "$url" | grep 'a release'
}

# What the first session left behind.
find_data() { # address of apps, address of files
  resume ada
  json "$BASE/api/v1/panel/get-application-settings?applicationId=$APP" -H "Authorization: Bearer $KEY" > /dev/null
  json -b "$DIR/jar" "$BASE/api/v1/panel/avatar" | head -c 12 | grep --text --quiet WEBP
  download "$@" > /dev/null
  echo 'session, key, application, avatar and file'
}

# The commands of docs/grpc.md for grpcurl without TLS.
grpcurl_commands() { # address of apps
  resume ada
  # shellcheck disable=SC2034
  local APPS_GRPC=$1:9082 commands
  commands=$(block_with docs/grpc.md 'grpcurl -plaintext' | sed -n "/^grpcurl -plaintext/,/^\$/p" |
    sed "s/lk_sock_…/$SOCKET_KEY/")
  eval "$commands" | tee "$home/grpcurl"
  grep --quiet '"name": "Difference Engine"' "$home/grpcurl"
  grep --quiet SERVING "$home/grpcurl"
}

read_concurrently() { # requests
  resume ada
  curl --fail --silent --show-error --parallel --parallel-max 64 -H "Authorization: Bearer $KEY" \
    "$BASE/api/v1/panel/get-application-settings?applicationId=$APP&x=[1-$1]" > /dev/null
}

"$@"
