import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import { request } from 'node:https'
import type { AddressInfo } from 'node:net'
import { spawn } from 'node:child_process'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { TLSSocket } from 'node:tls'
import { inject } from 'vitest'
import { EDGE_PORTS } from '../../../shared/edge-objects.ts'
import { clientsOf, type Kubernetes, run } from '../setup/commands.ts'
import { memberOf, openTenantNamespace } from '../setup/tenant.ts'
import { EDGES } from '../setup/release.ts'
import { KUBECTL_WAIT } from '../../support/patience.ts'

/** Host name in known_hosts for all edges, which have the same host keys. */
const HOST = 'edges'

export interface Visit {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: string
  /** Serial number of the certificate that the edge presented. */
  readonly serial: string
}

/** Editor of a tenant's namespace who has a key and a local web server and uses the endpoint `default`. */
export interface TunnelBench extends AsyncDisposable {
  /** Runs kubectl as the cluster's administrator. */
  readonly kubectl: Kubernetes['kubectl']
  /** Runs kubectl as the editor, who has no permissions outside of the namespace. */
  readonly editor: Kubernetes['kubectl']
  readonly namespace: string
  /** Creates a tunnel by kubectl that accepts the editor's key. Resolves with its hostname. */
  tunnel(name: string): Promise<string>
  /**
   * Connects the local web server, which answers with the received headers, with the stock ssh client to a node, or to an edge with a
   * given address. The connection ends with the bench.
   */
  connect(hostname: string, edge?: string): AsyncDisposable
  /** Visits a tunnel at a node, or at an edge with a given address. @throws Error when the connection ends before the answer */
  visit(hostname: string, edge?: string, path?: string): Promise<Visit>
  /** Returns the number of open requests with paths that begin with `/held`, which the local web server never answers. */
  readonly held: () => number
}

/** Opens a bench on the suite's cluster, or on another cluster whose installation has the CA `ca` (PEM). */
export async function openTunnelBench(other?: { readonly kubeconfig: string; readonly ca: string }): Promise<TunnelBench> {
  await using started = new AsyncDisposableStack()
  const { kubeconfig, ca } = other ?? { kubeconfig: process.env.KUBECONFIG ?? '', ca: inject('installation').ca }
  const clients = clientsOf(kubeconfig)
  const { kubectl } = clients
  const node = await clients.nodeAddress()
  const directory = await mkdtemp(join(tmpdir(), 'mooring-tunnels-'))
  started.defer(() => rm(directory, { recursive: true }))
  const [key, knownHosts] = [join(directory, 'key'), join(directory, 'known_hosts')]
  await run({ file: 'ssh-keygen', args: ['-q', '-t', 'ed25519', '-N', '', '-C', 'person', '-f', key] })
  const hostKeys = await kubectl(['get', 'tunnelendpoint', 'default', '--output', 'jsonpath={.status.hostKeys[0]}'])
  await writeFile(knownHosts, `${HOST} ${hostKeys}\n`)
  const publicKey = (await readFile(`${key}.pub`, 'utf8')).trim()
  const namespace = `tunnels-${Date.now().toString(36)}--prod`
  started.use(await openTenantNamespace(kubectl, namespace))
  const { kubectl: editor } = started.use(await memberOf(clients, { namespace, role: 'editor' }))
  const { port, held } = await echo(started)

  const owned = started.use(new AsyncDisposableStack())
  const ownership = started.move()
  return {
    ...{ kubectl, editor, namespace, held },
    async tunnel(name) {
      const spec = { regionId: 1, config: { authorizedKeys: [publicKey] } }
      const instanceBody = { apiVersion: 'mooring.dev/v1alpha1', kind: 'Tunnel', metadata: { name }, spec }
      await editor(['apply', '--filename', '-'], instanceBody)
      await editor(['wait', '--for=condition=Ready', `tunnel/${name}`, KUBECTL_WAIT])
      return editor(['get', 'tunnel', name, '--output', 'jsonpath={.status.hostname}'])
    },
    connect(hostname, edge) {
      const options = [
        ...[`IdentityFile=${key}`, 'IdentitiesOnly=yes', 'IdentityAgent=none', 'BatchMode=yes', 'ExitOnForwardFailure=yes'],
        ...['StrictHostKeyChecking=yes', `UserKnownHostsFile=${knownHosts}`, `HostKeyAlias=${HOST}`],
      ].flatMap((option) => ['-o', option])
      const at = edge === undefined ? { host: node, port: EDGES.ports.ssh } : { host: edge, port: EDGE_PORTS.ssh }
      const to = ['-p', String(at.port), '-R', `${hostname}:80:127.0.0.1:${port}`, `${hostname}@${at.host}`]
      const child = spawn('ssh', ['-F', 'none', '-N', ...options, ...to], { stdio: 'ignore' })
      const exited = once(child, 'exit')
      return owned.use({
        async [Symbol.asyncDispose]() {
          child.kill('SIGKILL')
          await exited
        },
      })
    },
    visit(hostname, edge, path = '/') {
      const at = edge === undefined ? { host: node, port: EDGES.ports.https } : { host: edge, port: EDGE_PORTS.https }
      return visit(`${hostname}.${EDGES.domain}`, { ...at, path, ca })
    },
    [Symbol.asyncDispose]: () => ownership.disposeAsync(),
  }
}

async function echo(started: AsyncDisposableStack): Promise<{ readonly port: number; readonly held: () => number }> {
  const held = new Set<ServerResponse>()
  const server = createServer((req, res) => {
    if (!req.url?.startsWith('/held')) {
      res.end(JSON.stringify(req.headers))
      return
    }
    held.add(res)
    res.once('close', () => held.delete(res))
  }).listen(0, '127.0.0.1')
  started.defer(() => {
    server.close()
    server.closeAllConnections()
  })
  await once(server, 'listening')
  return { port: (server.address() as AddressInfo).port, held: () => held.size }
}

interface At {
  readonly host: string
  readonly port: number
  readonly path: string
  readonly ca: string
}

async function visit(name: string, at: At): Promise<Visit> {
  const asked = request({ ...at, servername: name, headers: { Host: name }, agent: false })
  asked.end()
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    asked.once('response', resolve).once('error', reject)
  })
  const serial = answer.socket instanceof TLSSocket ? answer.socket.getPeerCertificate().serialNumber : ''
  return { status: answer.statusCode ?? 0, headers: answer.headers, body: await text(answer), serial }
}
