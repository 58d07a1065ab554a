import { z } from 'zod'
import { Secret } from '../../crds/core.ts'
import type { SharedInstance } from '../../crds/shared-instance.ts'
import type { Store } from '../../store/port.ts'
import { ApiError } from '../http/errors.ts'

/** Fields of an instance for callers with the right to read Secrets. `ca` is PEM, null when the server's certificate needs none. */
export interface Credentials {
  readonly password: string
  readonly uri: string
  readonly ca: string | null
}

/** Keys of a Service Binding Secret that the API shows; the Secret has more. */
const Binding = z.object({ password: z.base64().min(1), uri: z.base64().min(1), 'ca.crt': z.base64().optional() })

const decode = (base64: string) => Buffer.from(base64, 'base64').toString('utf8')

/**
 * Reads the credentials from the Secret that the instance's status names.
 * @throws ApiError `unavailable` when the Secret is missing or incomplete; StoreError
 */
export async function readCredentials(store: Store, { metadata, status }: SharedInstance): Promise<Credentials> {
  const name = status?.secretRef?.name
  const secret = name === undefined ? undefined : await store.get(Secret, { namespace: metadata.namespace, name })
  const binding = Binding.safeParse(secret?.data)
  // No cause: the parser's error may quote the Secret.
  if (!binding.success) throw new ApiError('unavailable', 'the credentials of this database are not available yet; try again')
  const { password, uri, 'ca.crt': ca } = binding.data
  return { password: decode(password), uri: decode(uri), ca: ca ? decode(ca) : null }
}
