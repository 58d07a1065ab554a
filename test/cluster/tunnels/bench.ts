import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type IncomingMessage } from 'node:http'
import { request } from 'node:https'
import type { AddressInfo } from 'node:net'
import { spawn } from 'node:child_process'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { TLSSocket } from 'node:tls'
import { inject } from 'vitest'
import { clientsOf, type Kubernetes } from '../setup/kubectl.ts'
import { EDGES } from '../setup/release.ts'
import { run } from '../setup/run.ts'

export interface Visit {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: string
  /** Serial number of the certificate that was shown. */
  readonly serial: string
}

/** A person with a tenant's namespace, a key and a local web server, who uses the endpoint `default` of the installation. */
export interface TunnelBench extends AsyncDisposable {
  readonly kubectl: Kubernetes['kubectl']
  readonly namespace: string
  /** Makes a tunnel by kubectl that takes the person's key. Resolves with its hostname. */
  tunnel(name: string): Promise<string>
  /** Connects the local web server, which answers with the headers it got, by the stock client. Ends with the bench. */
  connect(hostname: string): AsyncDisposable
  /** Visits a tunnel at a node, or at an edge whose address is given. */
  visit(hostname: string, edge?: string): Promise<Visit>
}

export async function openTunnelBench(): Promise<TunnelBench> {
  await using started = new AsyncDisposableStack()
  const clients = clientsOf(process.env.KUBECONFIG ?? '')
  const { kubectl } = clients
  const node = await clients.nodeAddress()
  const directory = await mkdtemp(join(tmpdir(), 'mooring-tunnels-'))
  started.defer(() => rm(directory, { recursive: true }))
  const [key, knownHosts] = [join(directory, 'key'), join(directory, 'known_hosts')]
  await run({ file: 'ssh-keygen', args: ['-q', '-t', 'ed25519', '-N', '', '-C', 'person', '-f', key] })
  const hostKeys = await kubectl(['get', 'tunnelendpoint', 'default', '--output', 'jsonpath={.status.hostKeys[0]}'])
  await writeFile(knownHosts, `[${node}]:${EDGES.ports.ssh} ${hostKeys}\n`)
  const publicKey = (await readFile(`${key}.pub`, 'utf8')).trim()
  const namespace = await tenant(kubectl, started)
  const port = await echo(started)

  const owned = started.use(new AsyncDisposableStack())
  const ownership = started.move()
  return {
    ...{ kubectl, namespace },
    async tunnel(name) {
      const metadata = { name, namespace }
      const spec = { regionId: 1, config: { authorizedKeys: [publicKey] } }
      await kubectl(['apply', '--filename', '-'], { apiVersion: 'mooring.dev/v1alpha1', kind: 'Tunnel', metadata, spec })
      await kubectl(['wait', '--for=condition=Ready', `tunnel/${name}`, '--namespace', namespace, '--timeout=60s'])
      return kubectl(['get', 'tunnel', name, '--namespace', namespace, '--output', 'jsonpath={.status.hostname}'])
    },
    connect(hostname) {
      const options = [
        ...[`IdentityFile=${key}`, 'IdentitiesOnly=yes', 'IdentityAgent=none', 'BatchMode=yes', 'ExitOnForwardFailure=yes'],
        ...['StrictHostKeyChecking=yes', `UserKnownHostsFile=${knownHosts}`],
      ].flatMap((option) => ['-o', option])
      const to = ['-p', String(EDGES.ports.ssh), '-R', `${hostname}:80:127.0.0.1:${port}`, `${hostname}@${node}`]
      const child = spawn('ssh', ['-F', 'none', '-N', ...options, ...to], { stdio: 'ignore' })
      const exited = once(child, 'exit')
      return owned.use({
        async [Symbol.asyncDispose]() {
          child.kill('SIGKILL')
          await exited
        },
      })
    },
    visit: (hostname, edge) =>
      visit(`${hostname}.${EDGES.domain}`, edge ? { host: edge, port: 28_443 } : { host: node, port: EDGES.ports.https }),
    [Symbol.asyncDispose]: () => ownership.disposeAsync(),
  }
}

async function tenant(kubectl: Kubernetes['kubectl'], started: AsyncDisposableStack): Promise<string> {
  const organization = `tunnels-${Date.now().toString(36)}`
  const name = `${organization}--prod`
  const labels = { 'mooring.dev/organization': organization, 'mooring.dev/namespace': 'prod' }
  await kubectl(['apply', '--filename', '-'], { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } })
  started.defer(async () => {
    await kubectl(['delete', 'tenantnamespace', name, '--ignore-not-found', '--wait'])
    await kubectl(['delete', 'organization', organization, '--ignore-not-found', '--wait=false'])
  })
  await kubectl(['wait', '--for=condition=Ready', `tenantnamespace/${name}`, '--timeout=60s'])
  return name
}

async function echo(started: AsyncDisposableStack): Promise<number> {
  const server = createServer((req, res) => res.end(JSON.stringify(req.headers))).listen(0, '127.0.0.1')
  started.defer(() => void server.close())
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

async function visit(name: string, at: { readonly host: string; readonly port: number }): Promise<Visit> {
  const { ca } = inject('installation')
  const asked = request({ ...at, ca, servername: name, headers: { Host: name }, path: '/', agent: false })
  asked.end()
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    asked.once('response', resolve).once('error', reject)
  })
  const serial = answer.socket instanceof TLSSocket ? answer.socket.getPeerCertificate().serialNumber : ''
  return { status: answer.statusCode ?? 0, headers: answer.headers, body: await text(answer), serial }
}
