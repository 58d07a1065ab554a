import { createHmac } from 'node:crypto'

/**
 * Where the API server tells of writes that did not come by REST. Whoever may call it may write entries of the audit log, and a webhook is
 * given no credentials: so its path is one that only the operator, the API server and administrators of the cluster can know.
 */
export function auditPath(tokenSecret: Uint8Array): string {
  return `/audit/${createHmac('sha256', tokenSecret).update('audit webhook').digest('hex').slice(0, 40)}`
}
