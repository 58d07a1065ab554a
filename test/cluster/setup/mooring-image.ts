import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import { connect, type Socket } from 'node:net'
import { type BedSettings, script, type Docker } from './bed.ts'
import { run, say } from './commands.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const REPOSITORY = 'mooring'
/** Maximum size of the build cache, which has layers of packages and npm's own cache. */
const KEPT = '2GB'
const STAND_IN = 'localhost/node:24'

/** Image of all components, and its archive. */
export interface MooringImage {
  readonly repository: string
  readonly tag: string
  readonly archive: string
}

/** Builds the image from the Dockerfile, unless an image of the same sources exists. */
export async function buildMooringImage(engine: Docker, settings: BedSettings): Promise<MooringImage> {
  const directory = join(settings.TC_CACHE, 'images')
  await mkdir(directory, { recursive: true })
  const tag = await hashOfSources()
  const name = `${REPOSITORY}-${tag}.tar`
  const image = { repository: REPOSITORY, tag, archive: join(directory, name) }
  const kept = (await readdir(directory)).filter((file) => /^mooring-[0-9a-f]+\.tar$/.test(file))
  if (kept.includes(name)) {
    say(`the image ${REPOSITORY}:${tag} is built already`)
    return image
  }
  await build(engine, `${REPOSITORY}:${tag}`, directory)
  await engine.docker('saving the image', ['save', `${REPOSITORY}:${tag}`, '--output', `${image.archive}.new`])
  await rename(`${image.archive}.new`, image.archive)
  if (engine.isolated) await tidy(engine, `${REPOSITORY}:${tag}`)
  await Promise.all(kept.map((file) => rm(join(directory, file), { force: true })))
  return image
}

async function build(engine: Docker, tag: string, directory: string): Promise<void> {
  const options = ['build', '--tag', tag]
  if (!engine.isolated) {
    await engine.docker('building the image', [...options, ROOT])
    return
  }
  // The isolated network reaches no image registry: the base image is built here, and packages come over a proxy.
  const base = join(directory, 'node24.tar')
  await run({ title: 'making a base image', file: script('node-image'), args: [STAND_IN, base] })
  await engine.docker('loading the base image', ['load', '--quiet', '--input', base])
  await rm(base)
  const { gateway, cgroupParent } = engine.isolated
  const registry = new URL(await run({ file: 'npm', args: ['config', 'get', 'registry'] }))
  await using proxy = await startRegistryProxy(gateway, registry)
  const secrets = await mkdtemp(join(tmpdir(), 'mooring-image-'))
  try {
    const npmrc = join(secrets, 'npmrc')
    const ca = await certificates()
    const lines = [
      `registry=${registry.href}`,
      `https-proxy=${proxy.url}`,
      ...(ca === undefined ? [] : ['cafile=/run/secrets/ca']),
    ]
    await writeFile(npmrc, `${lines.join('\n')}\n`)
    await engine.docker('building the image', [
      ...options,
      ...['--network', 'host', '--cgroup-parent', cgroupParent],
      // The base image has no compiler: the native ciphers for SSH are those that the installation on this machine compiled.
      ...['--build-arg', `NODE_IMAGE=${STAND_IN}`, '--build-arg', `BUILD_IMAGE=${STAND_IN}`],
      ...['--secret', `id=npmrc,src=${npmrc}`],
      ...(ca === undefined ? [] : ['--secret', `id=ca,src=${ca}`]),
      ROOT,
    ])
  } finally {
    await rm(secrets, { recursive: true })
  }
}

/** Removes the archived image and limits the build cache of the suite's engine. */
async function tidy({ docker }: Docker, tag: string): Promise<void> {
  await docker(undefined, ['image', 'rm', tag])
  await docker(undefined, ['image', 'prune', '--force'])
  const prune = (which: readonly string[]) => docker(undefined, ['builder', 'prune', '--force', ...which])
  try {
    await prune(['--keep-storage', KEPT])
  } catch {
    // An engine that was killed during a build keeps records of missing layers, whose size it cannot determine.
    say('the build cache is damaged: all of it is removed')
    await prune(['--all'])
  }
}

/** Returns the path of the CA certificates that npm is configured to trust, if any. */
async function certificates(): Promise<string | undefined> {
  const configured = await run({ file: 'npm', args: ['config', 'get', 'cafile'] })
  return configured === 'null' || configured === '' ? process.env.NODE_EXTRA_CA_CERTS : configured
}

/** Returns a content hash of all files that .dockerignore admits to the image. */
async function hashOfSources(): Promise<string> {
  const ignore = (await readFile(join(ROOT, '.dockerignore'), 'utf8')).split('\n')
  const roots = ignore.filter((line) => line.startsWith('!')).map((line) => line.slice(1))
  const found = await Promise.all(['Dockerfile', '.dockerignore', ...roots].map(filesUnder))
  const hash = createHash('sha256').update(process.version)
  for (const path of found.flat().toSorted()) hash.update(`\0${path}\0`).update(await readFile(join(ROOT, path)))
  return hash.digest('hex').slice(0, 12)
}

async function filesUnder(path: string): Promise<readonly string[]> {
  if (!existsSync(join(ROOT, path))) return []
  const all = await readdir(join(ROOT, dirname(path)), { withFileTypes: true })
  const entry = all.find(({ name }) => join(dirname(path), name) === path)
  if (!entry) return []
  if (!entry.isDirectory()) return [path]
  const below = await readdir(join(ROOT, path), { recursive: true, withFileTypes: true })
  return below
    .filter((file) => file.isFile() && !file.name.endsWith('.test.ts'))
    .map((file) => join(file.parentPath, file.name).slice(ROOT.length))
}

/** Proxy to one host and port, for a network without a route to others. */
export interface RegistryProxy extends AsyncDisposable {
  /** Value of npm's setting `https-proxy`. */
  readonly url: string
}

/**
 * Starts an HTTP proxy (RFC 9110, section 9.3.6: CONNECT) on `address` that connects only to `registry`. Images are built in a
 * network without a route to other networks and get their packages over this proxy.
 */
async function startRegistryProxy(address: string, registry: URL): Promise<RegistryProxy> {
  const target = { host: registry.hostname, port: Number(registry.port || '443') }
  const allowed = `${target.host}:${target.port}`
  const open = new Set<Socket>()
  const server = createServer((_, res) => res.writeHead(405).end())
  server.on('connect', (req: IncomingMessage, client: Socket) => {
    if (req.url !== allowed) {
      client.end('HTTP/1.1 403 Forbidden\r\n\r\n')
      return
    }
    const upstream = connect(target, () => {
      client.write('HTTP/1.1 200 Connection Established\r\n\r\n')
      client.pipe(upstream).pipe(client)
    })
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      open.add(socket)
      socket.on('error', () => other.destroy())
      socket.on('close', () => {
        open.delete(socket)
        other.destroy()
      })
    }
  })
  server.listen(0, address)
  await once(server, 'listening')
  const bound = server.address()
  if (bound === null || typeof bound === 'string') throw new Error('a listening server has an address')

  return {
    url: `http://${address}:${bound.port}`,
    async [Symbol.asyncDispose]() {
      for (const socket of open) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}
