import { createHmac } from 'node:crypto'

// Secrets of the audit log. Both derive from the token secret, which only the operator, the API server and administrators of the cluster have.

/**
 * Digest that the audit log stores in place of a value that may be a secret. Equal values of one `owner` have equal digests; a digest
 * reveals nothing else.
 */
export type ValueDigest = (owner: string, value: string) => string

/**
 * Makes the digest function. Its key is secret, so a reader of the log cannot test guesses against a digest. `owner` is the uid of the
 * resource, so a tenant cannot test guesses with values of its own resources.
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

/**
 * Returns the path of the audit webhook, to which the Kubernetes API server reports writes that did not use the REST API. Kubernetes sends
 * no credentials to a webhook, and each call adds entries to the audit log: so the path itself is secret.
 */
export function auditPath(tokenSecret: Uint8Array): string {
  return `/audit/${createHmac('sha256', tokenSecret).update('audit webhook').digest('hex').slice(0, 40)}`
}
