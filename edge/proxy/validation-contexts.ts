import { createSecureContext, type SecureContext, type TLSSocket } from 'node:tls'
import { validationCertificate } from '../../shared/tls-alpn.ts'

/**
 * TLS contexts with which the edge answers the challenge tls-alpn-01 (RFC 8737). OpenSSL asks for the protocol before the certificate in TLS 1.3,
 * and after it in TLS 1.2, so both callbacks take part.
 */
export interface ValidationContexts {
  /** Takes note that the client has offered the protocol of the challenge. Returns whether the server name is under order. */
  choose(socket: TLSSocket, serverName: string): boolean
  /** Makes the context of a server name under order. Returns it for a handshake whose protocol is that of the challenge, else undefined. */
  find(socket: TLSSocket, serverName: string): Promise<SecureContext | undefined>
}

/** Maximum number of contexts. A further one is made when a handshake needs it. */
const SIZE = 200

interface Validation {
  readonly keyAuthorization: string
  readonly context: Promise<SecureContext>
  made?: SecureContext
}

/**
 * Creates the contexts. They depend on the key authorization alone, so any edge can answer.
 * @param tlsChallenge returns the key authorization of a server name under order
 */
export function createValidationContexts(tlsChallenge: (serverName: string) => string | undefined): ValidationContexts {
  const cached = new Map<string, Validation>()
  /** Connections whose protocol is that of the challenge. */
  const chosen = new WeakSet<TLSSocket>()

  function open(serverName: string, keyAuthorization: string): Validation {
    const found = cached.get(serverName)
    if (found?.keyAuthorization === keyAuthorization) return found
    const context = validationCertificate(serverName, keyAuthorization).then(createSecureContext)
    const validation: Validation = { keyAuthorization, context }
    cached.delete(serverName)
    cached.set(serverName, validation)
    const [oldest] = cached.keys()
    if (cached.size > SIZE && oldest !== undefined) cached.delete(oldest)
    return validation
  }

  return {
    choose(socket, serverName) {
      const keyAuthorization = tlsChallenge(serverName)
      if (keyAuthorization === undefined) return false
      chosen.add(socket)
      const found = cached.get(serverName)
      // TLS 1.2: `find` was called before, for this connection.
      if (found?.made && found.keyAuthorization === keyAuthorization) socket.setKeyCert(found.made)
      return true
    },
    async find(socket, serverName) {
      const keyAuthorization = tlsChallenge(serverName)
      if (keyAuthorization === undefined) return undefined
      const validation = open(serverName, keyAuthorization)
      validation.made = await validation.context
      return chosen.has(socket) ? validation.made : undefined
    },
  }
}
