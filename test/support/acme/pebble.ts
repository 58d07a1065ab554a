import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { access, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { until } from '../../bench/metrics.ts'
import { createCa, issueCertificate } from '../../../operator/certificates/local-ca.ts'
import { CACHE } from '../debian-packages.ts'
import { freePort } from '../free-port.ts'

const VERSION = 'v2.10.3'
const MODULE = `github.com/letsencrypt/pebble/v2/cmd`
const run = promisify(execFile)

/** Builds Pebble once, into the user's cache. */
async function programs(): Promise<string> {
  const directory = join(CACHE, `pebble-${VERSION}`)
  const names = ['pebble', 'pebble-challtestsrv']
  const there = await Promise.allSettled(names.map((name) => access(join(directory, name))))
  if (there.some(({ status }) => status === 'rejected')) {
    await mkdir(directory, { recursive: true })
    const PATH = `${process.env.PATH ?? ''}:/usr/local/go/bin`
    await run('go', ['install', ...names.map((name) => `${MODULE}/${name}@${VERSION}`)], {
      env: { ...process.env, PATH, GOBIN: directory },
    })
  }
  return directory
}

export interface PebbleOptions {
  /** Port that Pebble connects to for http-01. */
  readonly httpPort: number
  /** Port that it connects to for tls-alpn-01; default: the same. */
  readonly tlsPort?: number
  /** Address that Pebble and its DNS server listen on; default: loopback. */
  readonly address?: string
  /** Address that every name resolves to; default: loopback. */
  readonly resolvesTo?: string
  /** DNS server that Pebble asks, `{address}:{port}`; default: one of its own. */
  readonly nameserver?: string
  /** Variables of Pebble; default: no delays, no rejected nonces, no reused authorizations. */
  readonly env?: Readonly<Record<string, string>>
  /** Further fields of its configuration. */
  readonly config?: Readonly<Record<string, unknown>>
  /** Port of an earlier instance. */
  readonly port?: number
  readonly authority?: Authority
}

/** CA of Pebble's own TLS certificate, PEM. */
export interface Authority {
  readonly certificate: string
  readonly key: string
}

/** Running certificate authority, with a DNS server. */
export interface Pebble extends AsyncDisposable {
  readonly directoryUrl: string
  readonly port: number
  /** CA of the directory's TLS certificate, and the file that has it. */
  readonly authority: Authority
  readonly caFile: string
  /** DNS server that Pebble asks, `{address}:{port}`. */
  readonly nameserver: string
  /** Root of issued certificates, PEM. */
  root(): Promise<string>
  /** Makes the DNS server answer every name with an address; an empty text: with none. */
  resolveTo(address: string): Promise<void>
  /** Makes the DNS server answer with the value of a TXT record. */
  setText(name: string, value: string): Promise<void>
  /** Sets the renewal information of a certificate (PEM). */
  setRenewalInfo(certificate: string, response: object): Promise<void>
  /** Status of a certificate (PEM): `Status` is `Valid` or `Revoked`, the latter with its `Reason`. */
  statusOf(certificate: string): Promise<unknown>
  /** Number of orders, of validations, or of other lines of the log that match. */
  count(pattern: RegExp): number
  log(): string
}

/** Orders in Pebble's log. */
export const ORDERS = /Added order/g

export async function startPebble(options: PebbleOptions): Promise<Pebble> {
  const { httpPort, address = '127.0.0.1', resolvesTo = '127.0.0.1' } = options
  const bin = await programs()
  await using cleanup = new AsyncDisposableStack()
  const directory = await mkdtemp(join(tmpdir(), 'mooring-pebble-'))
  cleanup.defer(() => rm(directory, { recursive: true, force: true, maxRetries: 5 }))
  const authority = options.authority ?? (await createCa(new Date()))
  const own = await issueCertificate({ ca: authority, names: [address, 'localhost'], now: new Date() })
  const [dns, dnsControl, control] = [await freePort(), await freePort(), await freePort()]
  const { nameserver = `${address}:${dns}` } = options
  const port = options.port ?? (await freePort())
  const file = (name: string) => join(directory, name)
  await writeFile(file('ca.pem'), authority.certificate)
  await writeFile(file('cert.pem'), own.certificate)
  await writeFile(file('key.pem'), own.key)
  const pebble = {
    ...{ listenAddress: `${address}:${port}`, managementListenAddress: `127.0.0.1:${control}` },
    ...{
      certificate: file('cert.pem'),
      privateKey: file('key.pem'),
      httpPort,
      tlsPort: options.tlsPort ?? httpPort,
      ocspResponderURL: '',
    },
    ...{ keyAlgorithm: 'ecdsa', profiles: { default: { description: 'usual', validityPeriod: 7_776_000 } } },
    ...options.config,
  }
  await writeFile(file('config.json'), JSON.stringify({ pebble }))
  const off = ['-http01', '', '-https01', '', '-tlsalpn01', '', '-doh', '', '-defaultIPv6', '']
  const names = ['-dnsserver', `${address}:${dns}`, '-management', `127.0.0.1:${dnsControl}`, '-defaultIPv4', resolvesTo]
  cleanup.use(started(spawn(join(bin, 'pebble-challtestsrv'), [...off, ...names], { stdio: 'pipe' })))
  const env = { PEBBLE_VA_NOSLEEP: '1', PEBBLE_WFE_NONCEREJECT: '0', PEBBLE_AUTHZREUSE: '0', ...options.env }
  const server = spawn(join(bin, 'pebble'), ['-strict', '-config', file('config.json'), '-dnsserver', nameserver], {
    env: { ...process.env, ...env },
    stdio: 'pipe',
  })
  const { output } = cleanup.use(started(server))
  const listening = async (what: number) => {
    await until(`a server on port ${what}`, () =>
      fetch(`http://127.0.0.1:${what}/`).then(
        () => true,
        () => false,
      ),
    )
  }
  await listening(dnsControl)
  await until('Pebble is ready', () => Promise.resolve(output().includes('ACME directory available')))
  const ownership = cleanup.move()
  return {
    directoryUrl: `https://${address}:${port}/dir`,
    ...{ port, authority, caFile: file('ca.pem'), nameserver },
    async root() {
      const { stdout } = await run('curl', ['-sk', `https://127.0.0.1:${control}/roots/0`])
      return stdout
    },
    async resolveTo(ip) {
      await fetch(`http://127.0.0.1:${dnsControl}/set-default-ipv4`, { method: 'POST', body: JSON.stringify({ ip }) })
    },
    async setText(name, value) {
      const body = JSON.stringify({ host: `${name}.`, value })
      await fetch(`http://127.0.0.1:${dnsControl}/set-txt`, { method: 'POST', body })
    },
    async setRenewalInfo(certificate, response) {
      const body = JSON.stringify({ certificate, ariResponse: JSON.stringify(response) })
      await run('curl', ['-skf', '--data', body, `https://127.0.0.1:${control}/set-renewal-info/`])
    },
    async statusOf(certificate) {
      const serial = new X509Certificate(certificate).serialNumber.toLowerCase().replace(/^0+/, '')
      const { stdout } = await run('curl', ['-skf', `https://127.0.0.1:${control}/cert-status-by-serial/${serial}`])
      return JSON.parse(stdout) as unknown
    },
    count: (pattern) => output().match(pattern)?.length ?? 0,
    log: output,
    [Symbol.asyncDispose]: () => ownership.disposeAsync(),
  }
}

function started(child: ChildProcess): AsyncDisposable & { readonly output: () => string } {
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (chunk: Buffer) => (output += chunk.toString()))
  return {
    output: () => output,
    async [Symbol.asyncDispose]() {
      if (child.exitCode !== null || child.signalCode !== null) return
      const ended = once(child, 'exit')
      child.kill('SIGKILL')
      await ended
    },
  }
}

/** Arguments of an embedded Mooring that obtains certificates from this CA. */
export function acmeArguments(
  { directoryUrl, caFile, nameserver }: Pick<Pebble, 'directoryUrl' | 'caFile' | 'nameserver'>,
  httpPort: number,
): readonly string[] {
  const ofCa = ['--issuer-acme', '--acme-agree-terms', '--acme-directory', directoryUrl, '--acme-ca', caFile]
  return [...ofCa, '--acme-nameservers', nameserver, '--domain', 'tunnel.example.test', '--http-port', String(httpPort)]
}
