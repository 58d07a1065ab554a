import { once } from 'node:events'
import { connect as connectHttp2 } from 'node:http2'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { Secret } from '../../crds/core.ts'
import { labels, SYSTEM_NAMESPACE } from '../../crds/names.ts'
import { Tunnel } from '../../crds/tunnel.ts'
import { TunnelEndpoint } from '../../crds/tunnel-endpoint.ts'
import { unknownHostsSecret } from '../../shared/edge-objects.ts'
import { issueCertificate } from '../../operator/certificates/local-ca.ts'
import { encodeSecret } from '../../operator/secret-data.ts'
import { serveStore, type EdgeProcess, startEdgeProcess } from '../support/edge/edge-process.ts'
import { makeKey, visit } from '../support/edge/mesh-client.ts'
import { DOMAIN, ENDPOINT, openMeshFixture } from '../support/edge/mesh-edges.ts'
import { freshHostname } from '../support/edge/ssh-edge.ts'
import { freePort } from '../support/free-port.ts'
import { SOON } from '../support/patience.ts'

/** Certificate for unknown hosts, from its Secret to the visitor, in an edge with its own process. */

const UNKNOWN = 'f'.repeat(16)
const secretKey = { namespace: SYSTEM_NAMESPACE, name: unknownHostsSecret(ENDPOINT) }
const fixture = await openMeshFixture()
const kubeconfig = join(fixture.directory, 'kubeconfig')
const api = await serveStore(fixture.store, kubeconfig)
let edge: EdgeProcess
beforeAll(async () => {
  edge = await start()
})
afterAll(async () => {
  await edge[Symbol.asyncDispose]()
  await api[Symbol.asyncDispose]()
  await fixture[Symbol.asyncDispose]()
})

const start = async (before?: EdgeProcess) =>
  startEdgeProcess(fixture, {
    name: 'edge',
    kubeconfig,
    metricsPort: await freePort(),
    ...(before && { dataDir: before.dataDir }),
  })

/** Writes the Secret and then the endpoint's status, as the operator does. @returns the certificate, PEM */
async function keepCertificate(): Promise<string> {
  const { certificate, key } = await issueCertificate({ ca: fixture.ca, names: [`*.${DOMAIN}`, DOMAIN], now: new Date() })
  const data = encodeSecret({ 'tls.crt': certificate, 'tls.key': key })
  if (await fixture.store.get(Secret, secretKey)) await fixture.store.mergePatch(Secret, secretKey, { data })
  else {
    const metadata = { ...secretKey, labels: { [labels.endpoint]: ENDPOINT } }
    await fixture.store.create(Secret, { metadata, type: 'kubernetes.io/tls', data })
  }
  const strangersCertificate = { notBefore: new Date().toISOString(), notAfter: new Date().toISOString() }
  await fixture.store.patchStatus(TunnelEndpoint, { name: ENDPOINT }, { strangersCertificate })
  return certificate
}

const ask = ({ ports }: EdgeProcess, hostname = UNKNOWN) => visit({ port: ports.https, hostname, ca: fixture.ca.certificate })

/** Returns the certificate that the edge serves for a hostname. */
async function shown({ ports }: EdgeProcess, hostname = UNKNOWN) {
  const socket = connect({ port: ports.https, servername: `${hostname}.${DOMAIN}`, ca: fixture.ca.certificate })
  await once(socket, 'secureConnect')
  const { serialNumber, subjectaltname } = socket.getPeerCertificate()
  socket.destroy()
  return { serialNumber, subjectaltname }
}

test('an edge rejects handshakes of unknown hosts until their certificate exists, and then answers 404 without a restart', async () => {
  await expect(ask(edge)).rejects.toThrow()
  await keepCertificate()
  await vi.waitFor(async () => expect(await ask(edge)).toMatchObject({ status: 404, error: 'unknown_host' }), SOON)
})

test('an HTTP/2 connection for an unknown host gets 404, and 421 for the host of a tunnel', async () => {
  const { hostname } = await fixture.tunnel((await makeKey(fixture)).publicKey)
  const session = connectHttp2(`https://${UNKNOWN}.${DOMAIN}:${String(edge.ports.https)}`, {
    ...{ host: '127.0.0.1', ca: fixture.ca.certificate },
    createConnection: () =>
      connect({
        ...{ host: '127.0.0.1', port: edge.ports.https, servername: `${UNKNOWN}.${DOMAIN}` },
        ...{ ca: fixture.ca.certificate, ALPNProtocols: ['h2'] },
      }),
  })
  session.on('error', () => undefined)
  onTestFinished(() => session.destroy())
  const answerTo = async (host: string) => {
    const stream = session.request({ ':authority': `${host}.${DOMAIN}` })
    const [headers] = (await once(stream, 'response')) as [Record<string, string>]
    stream.close()
    return [headers[':status'], headers['mooring-error']]
  }
  expect(await answerTo(UNKNOWN)).toEqual([404, 'unknown_host'])
  expect(await answerTo(hostname)).toEqual([421, 'misdirected'])
})

test('an edge serves a renewed certificate for unknown hosts without a restart', async () => {
  await keepCertificate()
  await vi.waitFor(async () => expect((await shown(edge)).subjectaltname).toBe(`DNS:*.${DOMAIN}, DNS:${DOMAIN}`), SOON)
  const before = await shown(edge)
  await keepCertificate()
  await vi.waitFor(async () => expect((await shown(edge)).serialNumber).not.toBe(before.serialNumber), SOON)
})

test('an edge waits for a tunnel’s own certificate instead of serving the one for unknown hosts', async () => {
  const hostname = freshHostname()
  const key = { namespace: 'acme--prod', name: `late-${hostname}` }
  const name = `tunnel-${hostname}-certificate`
  const { certificate, key: privateKey } = await issueCertificate({
    ca: fixture.ca,
    names: [`${hostname}.${DOMAIN}`],
    now: new Date(),
  })
  await fixture.store.create(Tunnel, { metadata: key, spec: { regionId: 1 } })
  await fixture.store.patchStatus(Tunnel, key, {
    ...{ hostname, endpointRef: { name: ENDPOINT } },
    certificate: { status: 'valid', obtainedAt: new Date().toISOString() },
  })
  // The edge has read the tunnel once it asks for the Secret.
  await vi.waitFor(() => expect(api.secretReads()).toContain(name), SOON)
  // A handshake waits a few seconds for the certificate, and then fails. Visitors repeat it.
  const handshake = vi.waitFor(() => shown(edge, hostname), SOON)
  await vi.waitFor(() => expect(api.secretReads().filter((read) => read === name).length).toBeGreaterThan(3), SOON)
  await fixture.store.create(Secret, {
    metadata: { namespace: SYSTEM_NAMESPACE, name, labels: { [labels.endpoint]: ENDPOINT } },
    type: 'kubernetes.io/tls',
    data: encodeSecret({ 'tls.crt': certificate, 'tls.key': privateKey }),
  })
  expect((await handshake).subjectaltname).toBe(`DNS:${hostname}.${DOMAIN}`)
})

test('an edge that starts without the API still serves the certificate for unknown hosts', async () => {
  const certificate = await keepCertificate()
  const kept = join(edge.dataDir, 'snapshot')
  const { strangersCertificate } = (await fixture.store.get(TunnelEndpoint, { name: ENDPOINT }))?.status ?? {}
  await vi.waitFor(async () => {
    const text = await readFile(kept, 'utf8')
    expect(text).toContain(strangersCertificate?.notBefore)
    expect(text).toContain(JSON.stringify(certificate))
  }, SOON)
  const { serialNumber } = await shown(edge)
  await api.leave()
  edge.kill('SIGKILL')
  await edge.exited
  edge = await start(edge)
  expect((await shown(edge)).serialNumber).toBe(serialNumber)
  expect(await ask(edge)).toMatchObject({ status: 404, error: 'unknown_host' })

  await api.comeBack()
  await keepCertificate()
  await vi.waitFor(async () => expect((await shown(edge)).serialNumber).not.toBe(serialNumber), SOON)
})
