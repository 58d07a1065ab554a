#!/bin/sh
# Installs the packages of package-lock.json where they are missing or older than it; else does nothing.
#   sh embedded/install.sh         what running needs
#   sh embedded/install.sh --dev   what checking and testing needs too
# Says all it has to say on stderr: the stdout of `npm run token` is the token's alone.
set -eu
exec >&2
cd "$(dirname "$0")/.."

fresh() {
  [ node_modules/.package-lock.json -nt package-lock.json ] && { [ "$1" != --dev ] || [ -x node_modules/.bin/vitest ]; }
}

fail() {
  echo "mooring: $1"
  exit 1
}

want=${1:---omit=dev}
# A start does not take away what somebody has for testing.
if [ -x node_modules/.bin/vitest ]; then want=--dev; fi
if fresh "$want"; then exit 0; fi

[ "$(uname -sm)" = 'Linux x86_64' ] || fail "needs Linux on x86-64, and this is $(uname -sm)."
node -e 'process.exit(parseInt(process.versions.node) >= 20 ? 0 : 1)' || fail "needs Node 20 or newer, and this is $(node -v)."

# Two starts at once on a bare clone would empty each other's node_modules: the second waits, and finds the work done.
if command -v flock > /dev/null; then
  exec 9< package-lock.json
  flock --nonblock 9 || { echo 'mooring: waiting for another install in this directory ...' && flock 9; }
  if fresh "$want"; then exit 0; fi
fi

echo 'mooring: installing packages, once ...'
[ "$want" = --dev ] && want=--include=dev
npm ci "$want" --loglevel=error < /dev/null || fail 'installing the packages failed, for the reason above; nothing was started.'
