import { z } from 'zod'
import { Secret } from '../../crds/core.ts'
import type { SharedInstance } from '../../crds/shared-instance.ts'
import type { Store } from '../../store/port.ts'
import { ApiError } from '../http/errors.ts'

/** What only those who may read Secrets see. `ca` is PEM, null where the server needs none. */
export interface Credentials {
  readonly password: string
  readonly uri: string
  readonly ca: string | null
}

/** The keys of a Service Binding Secret that the API shows; the Secret has more. */
const Binding = z.object({ password: z.base64().min(1), uri: z.base64().min(1), 'ca.crt': z.base64().optional() })

const decode = (base64: string) => Buffer.from(base64, 'base64').toString('utf8')

/**
 * Reads the Secret that an instance's status names.
 * @throws ApiError `unavailable` when it is not there or not complete; StoreError
 */
export async function readCredentials(store: Store, { metadata, status }: SharedInstance): Promise<Credentials> {
  const name = status?.secretRef?.name
  const secret = name === undefined ? undefined : await store.get(Secret, { namespace: metadata.namespace, name })
  const binding = Binding.safeParse(secret?.data)
  // No cause: what a parser says of a Secret may quote it.
  if (!binding.success) throw new ApiError('unavailable', 'the credentials of this database are not there yet; try again')
  const { password, uri, 'ca.crt': ca } = binding.data
  return { password: decode(password), uri: decode(uri), ca: ca ? decode(ca) : null }
}
