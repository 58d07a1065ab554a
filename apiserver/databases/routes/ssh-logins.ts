import { z } from 'zod'
import { DedicatedDatabase } from '../../../crds/dedicated-database.ts'
import { ownerReferenceTo } from '../../../crds/kind.ts'
import { page, PageQuery, resourceKey } from '../../http/paging.ts'
import { type AnyRoute, route } from '../../http/route.ts'
import { ConnectionsQuery } from '../../journal/tunnel-logs.ts'
import { ConnectionView, connectionView, journalPage, pageOf, requireOrder } from '../../journal/journal-schemas.ts'
import { rejectWhenDeleted } from '../../resources/cache-waits.ts'
import { idParam, listOf } from '../../tenancy/tenancy-deps.ts'
import { createSshPasswords, PasswordView, passwordView, type SshPasswords } from '../../tunnels/ssh-passwords.ts'
import { DATABASE_PATH, type DatabaseDeps, DatabaseParams, requireNotDeleting, type SshLogins } from '../database-deps.ts'
import { requirePasswordLogin } from '../ssh-tunnel-view.ts'

interface Deps extends DatabaseDeps, SshLogins {
  readonly passwords: SshPasswords<DedicatedDatabase>
}

/** Returns the routes about SSH logins to databases (docs/api.md, "Dedicated databases"). */
export function sshLoginRoutes(databaseDeps: DatabaseDeps, logins: SshLogins): AnyRoute[] {
  const { databases } = databaseDeps
  const passwords = createSshPasswords<DedicatedDatabase>({
    ...databaseDeps,
    ...logins,
    what: 'database',
    byUid: (uid) => databases.byUid(uid),
    referTo: (database) => ({
      spec: { databaseRef: { name: database.metadata.name } },
      owner: ownerReferenceTo(DedicatedDatabase, database),
    }),
    whenDeleted: (database) => rejectWhenDeleted(databases, database, 'the database was deleted meanwhile'),
  })
  const deps = { ...databaseDeps, ...logins, passwords }
  return [issuePassword, listPasswords, revokePassword, listConnections].map((make) => make(deps))
}

const PASSWORDS_PATH = `${DATABASE_PATH}/ssh-passwords`
const needs = (verb: 'list' | 'create' | 'delete') => [{ verb, resource: 'tunnelpasswords' }] as const

/** `POST /v1/databases/{id}/ssh-passwords`. */
function issuePassword({ find, passwords }: Deps): AnyRoute {
  return route({
    method: 'post',
    path: PASSWORDS_PATH,
    on: ['dedicated'],
    id: 'createDatabaseSshPassword',
    summary: 'Issue a temporary password for the SSH tunnel of a database; it is valid for 4 hours.',
    params: DatabaseParams,
    idempotent: true,
    replies: { 201: z.object({ password: PasswordView }) },
    async handle(request) {
      const database = await find(request.principal, request.params.id, needs('create'))
      requireNotDeleting(database)
      requirePasswordLogin(database)
      return passwords.issue(database, request)
    },
  })
}

/** `GET /v1/databases/{id}/ssh-passwords`: without the passwords, which are not stored. */
function listPasswords({ find, passwords }: Deps): AnyRoute {
  return route({
    method: 'get',
    path: PASSWORDS_PATH,
    on: ['dedicated'],
    id: 'listDatabaseSshPasswords',
    summary: 'List the valid temporary passwords for the SSH tunnel of a database.',
    params: DatabaseParams,
    query: z.object(PageQuery),
    replies: { 200: listOf('passwords', PasswordView) },
    async handle({ principal, params, query }) {
      const database = await find(principal, params.id, needs('list'))
      const { items, nextCursor } = page(passwords.live(database), query, resourceKey)
      return { status: 200, data: { passwords: items.map(passwordView), nextCursor } }
    },
  })
}

const PasswordParams = z.object({ ...DatabaseParams.shape, passwordId: idParam('Id of the password.') })

/** `DELETE /v1/databases/{id}/ssh-passwords/{passwordId}`: also ends the sessions that logged in with the password. */
function revokePassword({ find, passwords }: Deps): AnyRoute {
  return route({
    method: 'delete',
    path: `${PASSWORDS_PATH}/{passwordId}`,
    on: ['dedicated'],
    id: 'deleteDatabaseSshPassword',
    summary: 'Revoke a temporary password of a database; sessions that logged in with it end.',
    conditional: true,
    params: PasswordParams,
    replies: { 200: z.object({}) },
    async handle(request) {
      const database = await find(request.principal, request.params.id, needs('delete'))
      await passwords.revoke(database, request.params.passwordId, request)
      return { status: 200, data: {} }
    },
  })
}

/** `GET /v1/databases/{id}/connections`. */
function listConnections({ find, journal }: Deps): AnyRoute {
  return route({
    method: 'get',
    path: `${DATABASE_PATH}/connections`,
    on: ['dedicated'],
    id: 'listDatabaseConnections',
    summary: 'List the connects and disconnects of the SSH clients of a database.',
    params: DatabaseParams,
    query: ConnectionsQuery,
    replies: { 200: listOf('connections', ConnectionView) },
    async handle({ principal, params, query }) {
      const database = await find(principal, params.id)
      requireOrder(query)
      const { limit, cursor, include, ...filter } = query
      const records = await journal.connections(
        { ...filter, tunnel: database.metadata.uid, refused: include === 'refused' },
        journalPage({ limit, cursor }),
      )
      const { shown, nextCursor } = pageOf(records, limit)
      return { status: 200, data: { connections: shown.map(connectionView), nextCursor } }
    },
  })
}
