import type { V1Secret } from '@kubernetes/client-node'
import type { Secret } from '../../../crds/core.ts'
import type { KeyPair } from '../../certificates/local-ca.ts'
import { decodeSecret, encodeSecret } from '../../secret-data.ts'
import { childMetadata, childNames } from './names.ts'
import type { Plain } from '../../kubernetes/plain.ts'
import type { DesiredServer } from './desired-server.ts'

/** Secret of a server's certificate; its `ca.crt` is the CA of the operator's client certificate. */
export function certificateSecretOf({ server }: DesiredServer, { certificate, key }: KeyPair, ca: string): Plain<V1Secret> {
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: childMetadata(server, childNames(server.metadata.name).certificate),
    type: 'kubernetes.io/tls',
    data: encodeSecret({ 'tls.crt': certificate, 'tls.key': key, 'ca.crt': ca }),
  }
}

/** Key pair in a Secret of {@link certificateSecretOf}; undefined when it is incomplete. */
export function certificateIn(secret: Secret | undefined): KeyPair | undefined {
  const certificate = secret && decodeSecret(secret.data, 'tls.crt')
  const key = secret && decodeSecret(secret.data, 'tls.key')
  return certificate === undefined || key === undefined ? undefined : { certificate, key }
}
