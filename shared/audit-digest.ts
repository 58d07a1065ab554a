import { createHmac } from 'node:crypto'

/** What the audit log holds in place of a value that may be a secret. Equal values of one `owner` have equal digests; a digest reveals nothing else. */
export type ValueDigest = (owner: string, value: string) => string

/**
 * Makes digests by a key that only the operator, the API server and administrators of the cluster have, so that a reader of the log cannot try
 * values against one. `owner` is the uid of the resource: a tenant cannot find a value out by giving guesses to a resource of its own, either.
 */
export function createValueDigest(tokenSecret: Uint8Array): ValueDigest {
  const key = createHmac('sha256', tokenSecret).update('audit digest').digest()
  return (owner, value) => {
    const hmac = createHmac('sha256', key)
      .update(JSON.stringify([owner, value]))
      .digest('hex')
    return `hmac-sha256:${hmac.slice(0, 32)}`
  }
}
