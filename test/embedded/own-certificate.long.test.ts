import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { expect, test, vi } from 'vitest'
import { createCa, issueCertificate, type KeyPair } from '../../operator/certificates/local-ca.ts'
import type { Tunnel } from '../support/api/answers.ts'
import { startMooring } from '../support/deployment/mooring.ts'
import { LATER } from '../support/patience.ts'

const TUNNELS = '/v1/organizations/default/namespaces/default/tunnels'

/** Serial number of the certificate that a visitor gets, verified with this root. */
async function presented({ hostname, endpoint }: Tunnel, ca: string): Promise<string> {
  const socket = connect({ port: endpoint.httpsPort, host: '127.0.0.1', servername: `${hostname}.${endpoint.domain}`, ca })
  await once(socket, 'secureConnect')
  const { serialNumber } = socket.getPeerCertificate()
  socket.destroy()
  return serialNumber
}

test(
  'tunnels are served under the administrator’s own certificate, and each later one, but never an unusable one',
  LATER,
  async () => {
    const ca = await createCa(new Date())
    const issued = (name: string) => issueCertificate({ ca, names: [name], now: new Date() })
    const directory = await mkdtemp(join(tmpdir(), 'mooring-own-certificate-'))
    await using cleanup = new AsyncDisposableStack()
    cleanup.defer(() => rm(directory, { recursive: true, force: true }))
    const [certFile, keyFile] = [join(directory, 'tls.crt'), join(directory, 'tls.key')]
    const write = async ({ certificate, key }: KeyPair) => {
      await writeFile(certFile, certificate)
      await writeFile(keyFile, key)
    }
    await write(await issued('*.tunnel.localhost'))
    const mooring = cleanup.use(await startMooring({ args: ['--tls-cert-file', certFile, '--tls-key-file', keyFile] }))
    const { regionId } = mooring.ready
    const { tunnel } = (await mooring.call('POST', TUNNELS, { body: { name: 'own', regionId } })).body.data
    const certificate = async () => (await mooring.call('GET', `${TUNNELS}/${tunnel.id}/certificate`)).body.data.certificate
    await vi.waitFor(
      async () => expect(await certificate()).toMatchObject({ status: 'valid', domain: '*.tunnel.localhost' }),
      LATER,
    )
    const first = await presented(tunnel, ca.certificate)

    await write(await issued('*.tunnel.localhost'))
    await vi.waitFor(async () => expect(await presented(tunnel, ca.certificate)).not.toBe(first), LATER)
    const second = await presented(tunnel, ca.certificate)

    await write(await issued('*.example.org'))
    const why = /is for \*\.example\.org; it must be for \*\.tunnel\.localhost$/
    await vi.waitFor(async () => expect((await certificate()).lastError).toMatch(why), LATER)
    expect(await certificate()).toMatchObject({ status: 'valid' })
    expect(await presented(tunnel, ca.certificate)).toBe(second)

    await writeFile(keyFile, 'no key')
    await vi.waitFor(() => expect(mooring.output()).toMatch(/certificate files of the tunnels are unusable/), LATER)
    expect(await presented(tunnel, ca.certificate)).toBe(second)

    await write(await issued('*.tunnel.localhost'))
    await vi.waitFor(async () => expect(await certificate()).toMatchObject({ status: 'valid', lastError: null }), LATER)
    // The edge gets the certificate after the operator has reported it.
    await vi.waitFor(async () => expect(await presented(tunnel, ca.certificate)).not.toBe(second), LATER)
  },
)
