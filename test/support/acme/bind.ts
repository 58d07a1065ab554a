import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { Resolver } from 'node:dns/promises'
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { vi } from 'vitest'
import { updateTxt } from '../../../operator/acme/dns/update.ts'
import { codeOf } from '../../../shared/errors.ts'
import { freePort } from '../free-port.ts'
import { LATER } from '../patience.ts'

export interface BindOptions {
  /** Port of an earlier instance. */
  readonly port?: number
  /** Key of an earlier instance. */
  readonly key?: string
  /** Whether it follows CNAME records from one of its zones into another, as a resolver does. */
  readonly recursion?: boolean
  /** Lines of the zone `example.test`. */
  readonly records?: readonly string[]
}

/**
 * Authoritative BIND on loopback. The key `mooring` may change the record `_acme-challenge.tunnel` of the zone `example.test`, the zone
 * `challenges.test`, and nothing of the zone `fixed.test`. Another key, which Mooring does not get, may change any record of `example.test`.
 */
export interface Bind extends AsyncDisposable {
  readonly port: number
  /** `127.0.0.1:{port}`. */
  readonly address: string
  /** Secret of the key `mooring`, base64, and the file that has it. */
  readonly key: string
  readonly keyFile: string
  /** Values of the TXT records of a name. */
  texts(name: string): Promise<readonly string[]>
  /** Replaces the values of a TXT record of the zone `example.test`, as an administrator does. */
  setTexts(name: string, values: readonly string[]): Promise<void>
  log(): string
}

const zoneOf = (records: readonly string[]): string =>
  ['$TTL 60', '@ SOA ns.example.test. admin.example.test. 1 60 60 600 60', '@ NS ns.example.test.', ...records, ''].join('\n')

export async function startBind(options: BindOptions = {}): Promise<Bind> {
  await using cleanup = new AsyncDisposableStack()
  const directory = await mkdtemp(join(tmpdir(), 'mooring-bind-'))
  cleanup.defer(() => rm(directory, { recursive: true, force: true, maxRetries: 5 }))
  await chmod(directory, 0o755)
  const port = options.port ?? (await freePort())
  const key = options.key ?? randomBytes(32).toString('base64')
  const file = (name: string) => join(directory, name)
  const own = ['ns A 127.0.0.1', 'tunnel A 127.0.0.1', '*.tunnel A 127.0.0.1', ...(options.records ?? [])]
  const administrator = { name: 'administrator', algorithm: 'hmac-sha256', secret: randomBytes(32) } as const
  await writeFile(file('key'), key)
  await writeFile(file('example.test'), zoneOf(own))
  await writeFile(file('challenges.test'), zoneOf([]))
  await writeFile(file('fixed.test'), zoneOf([]))
  const zone = (name: string, policy: string) => `zone "${name}" { type primary; file "${file(name)}"; ${policy} };`
  const configuration = [
    `key mooring { algorithm hmac-sha256; secret "${key}"; };`,
    `key other { algorithm hmac-sha256; secret "${randomBytes(32).toString('base64')}"; };`,
    `key administrator { algorithm hmac-sha256; secret "${administrator.secret.toString('base64')}"; };`,
    `options { directory "${directory}"; pid-file "${file('pid')}"; session-keyfile "${file('session')}"; recursion ${options.recursion ? 'yes' : 'no'};`,
    `  listen-on port ${port} { 127.0.0.1; }; listen-on-v6 { none; }; dnssec-validation no; notify no; };`,
    'controls { };',
    zone(
      'example.test',
      'update-policy { grant mooring name _acme-challenge.tunnel.example.test. TXT; grant administrator zonesub ANY; };',
    ),
    zone('challenges.test', 'allow-update { key mooring; };'),
    zone('fixed.test', ''),
  ]
  await writeFile(file('named.conf'), configuration.join('\n'))
  const child = spawn('named', ['-g', '-n', '1', '-c', file('named.conf')], {
    env: { ...process.env, PATH: `${process.env.PATH ?? ''}:/usr/sbin` },
    stdio: 'pipe',
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (output += chunk.toString()))
  const ended = once(child, 'exit')
  cleanup.defer(async () => {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL')
    await ended
  })
  await vi.waitFor(() => {
    if (!/\brunning\b/.test(output)) throw new Error(`BIND did not start: ${output}`)
  }, LATER)
  const resolver = new Resolver()
  resolver.setServers([`127.0.0.1:${port}`])
  async function texts(name: string): Promise<readonly string[]> {
    try {
      return (await resolver.resolveTxt(name)).map((strings) => strings.join(''))
    } catch (error) {
      if (['ENODATA', 'ENOTFOUND'].includes(codeOf(error) ?? '')) return []
      throw error
    }
  }
  const ownership = cleanup.move()
  return {
    ...{ port, key, address: `127.0.0.1:${port}`, keyFile: file('key') },
    texts,
    async setTexts(name, values) {
      const change = (what: 'add' | 'remove', value: string) =>
        updateTxt({ host: '127.0.0.1', port }, { do: what, zone: 'example.test', name, value }, administrator, () => new Date())
      for (const value of await texts(name)) await change('remove', value)
      for (const value of values) await change('add', value)
    },
    log: () => output,
    [Symbol.asyncDispose]: () => ownership.disposeAsync(),
  }
}

/** Arguments of an embedded Mooring with the challenge dns-01 and this DNS server, beside those of `acmeArguments`. */
export function dnsArguments({ address, keyFile }: Pick<Bind, 'address' | 'keyFile'>): readonly string[] {
  const key = ['--acme-tsig-key-name', 'mooring', '--acme-tsig-key-file', keyFile]
  return ['--acme-challenge', 'dns-01', '--acme-dns-server', address, ...key]
}
