import { createHmac } from 'node:crypto'

/** What the audit log holds in place of a value that may be a secret: equal for equal values of one `owner`, and nothing to anybody else. */
export type ValueDigest = (owner: string, value: string) => string

/**
 * Digests by a key that only the operator, the API server and administrators of the cluster have: nobody can try values against one. The
 * uid of the resource is part of it, so nobody finds out a value by giving guesses to a resource of their own.
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
