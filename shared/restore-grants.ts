import { createHmac } from 'node:crypto'

/** Restore that a grant permits. */
export interface GrantedRestore {
  /** Uid of the database whose backups are restored. */
  readonly databaseId: string
  /** Moment to restore, as in the spec of the new database. */
  readonly time: string
  /** Namespace and name of the new database. */
  readonly namespace: string
  readonly name: string
}

/** Returns the grant of a restore: a MAC in hex. */
export type RestoreGrants = (restore: GrantedRestore) => string

/**
 * Creates the grants by which the API server permits a restore from a database of another namespace, after it has checked the caller's role
 * there. The key comes from the token secret, which only the operator, the API server and administrators of the cluster have: a tenant that
 * applies resources cannot make a grant.
 */
export function createRestoreGrants(tokenSecret: Uint8Array): RestoreGrants {
  const keyOf = () => createHmac('sha256', tokenSecret).update('restore grants').digest()
  return ({ databaseId, time, namespace, name }) =>
    createHmac('sha256', keyOf())
      .update(JSON.stringify([databaseId, time, namespace, name]))
      .digest('hex')
}
