#!/bin/sh
# Writes .env for docker-compose.yml, from .env.example beside this script, with a new secret for
# each empty value. Needs nothing but a shell.
set -eu
cd "$(dirname "$0")/../.."

if [ -e .env ]; then
  echo "There is a .env already: remove it first if you want another. Its secrets open the data." >&2
  exit 1
fi

secret() {
  od -An -v -tx1 -N"$1" /dev/urandom | tr -d ' \n'
}

umask 077
while IFS= read -r line || [ -n "$line" ]; do
  case $line in
    *_ACCESS_KEY_ID=) printf '%s%s\n' "$line" "$(secret 10)" ;;
    [A-Z]*=) printf '%s%s\n' "$line" "$(secret 32)" ;;
    *) printf '%s\n' "$line" ;;
  esac
done < deploy/compose/.env.example > .env.new
mv .env.new .env
echo "Wrote .env. Store a copy safely: without SECRET_KEY, keys that are stored can't be read."
