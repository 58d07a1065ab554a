import { connect } from 'node:tls'
import { ACME_TLS, isValidation } from '../../shared/tls-alpn.ts'

/** Failed check. `early`: a server was reached, but its response is wrong; an edge may not know the token yet. */
export interface ChallengeProblem {
  readonly message: string
  readonly early: boolean
}

interface Checked {
  /** Domain name of the certificate. */
  readonly identifier: string
  readonly keyAuthorization: string
}

interface Target {
  readonly address: string
  readonly port: number
}

const TIMEOUT_MS = 5_000

/**
 * Opens a TLS connection as the CA will for the challenge tls-alpn-01, and verifies the certificate (RFC 8737, section 3). Returns undefined
 * when it is right.
 */
export async function checkTlsAlpn(checked: Checked, { address, port }: Target): Promise<ChallengeProblem | undefined> {
  const { identifier, keyAuthorization } = checked
  const where = `the TLS connection to ${identifier}, port ${port} at ${address}`
  const wrong = (why: string): ChallengeProblem => ({
    early: true,
    message: `${where}, is not answered by an edge of this installation (${why}): its record must lead to the edges, port ${port} to their HTTPS port, with no proxy that ends TLS between them`,
  })
  try {
    const { protocol, certificate } = await handshake(identifier, { address, port })
    if (protocol !== ACME_TLS) return wrong(`the protocol ${ACME_TLS} was not chosen`)
    if (await isValidation(certificate, identifier, keyAuthorization)) return undefined
    return wrong('its certificate is not that of the challenge')
  } catch (error) {
    const why = error instanceof Error ? ('code' in error ? String(error.code) : error.message) : String(error)
    // A TLS server has rejected the handshake: an edge that does not know the token does so.
    if (why.startsWith('ERR_SSL_')) return wrong(why)
    return { early: false, message: `${where}, fails (${why}): open port ${port} and forward it to the edges` }
  }
}

interface Handshake {
  readonly protocol: string | false | null
  /** DER. */
  readonly certificate: Buffer
}

function handshake(servername: string, { address: host, port }: Target): Promise<Handshake> {
  const { promise, resolve, reject } = Promise.withResolvers<Handshake>()
  const socket = connect({ host, port, servername, ALPNProtocols: [ACME_TLS], rejectUnauthorized: false })
  socket.setTimeout(TIMEOUT_MS, () => socket.destroy(new Error('no answer in 5 s')))
  socket.once('error', reject)
  socket.once('close', () => reject(new Error('the connection was closed')))
  socket.once('secureConnect', () => {
    resolve({ protocol: socket.alpnProtocol, certificate: socket.getPeerCertificate().raw })
    socket.destroy()
  })
  return promise
}
