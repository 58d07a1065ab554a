import { setTimeout as delay } from 'node:timers/promises'
import { MooringError } from '../../../shared/errors.ts'
import { type Admitted, engineSources, isAdmitted } from '../access.ts'
import { type AdminTarget, type EngineAdmin, EngineCode } from '../engine.ts'
import { isTenantName } from './catalog.ts'
import type { Connection, Session } from './connection.ts'
import { killOperations } from './sessions.ts'
import { surveyOperations } from './survey.ts'
import { changeUser, clientsFrom, usersOf } from './users.ts'

/** Maximum number of checks, and the time between two of them: 4 s in total. */
const ROUNDS = 160
const PAUSE_MS = 25

interface Deps {
  readonly connection: Connection
  readonly target: AdminTarget
}

/** Restriction of a server's tenants to source addresses, by the restrictions of their logins. */
export interface Access {
  readonly admit: EngineAdmin['admit']
  /** Returns the ranges for a login that is written: those of the last `admit`; before the first one those that the login has, `stored`. */
  readonly clients: (stored: readonly string[] | undefined) => readonly string[] | undefined
  /** Whether a tenant could log in from the operator's address. */
  readonly includesOperator: () => Promise<boolean>
}

export function createAccess({ connection, target }: Deps): Access {
  let current: Admitted['engine']
  /** Whether `admit` was called: the operator may have restarted, and the logins of the server may be restricted. */
  let isKnown = false
  /** Sources of the last `admit` that was completed. */
  let settled: string | undefined

  return {
    clients: (stored) => (isKnown ? clientsFrom(current) : stored),
    async admit(given) {
      current = engineSources({ sources: given }, target)
      isKnown = true
      const desired = clientsFrom(current)
      const users = await usersOf(connection).find().project<Login>({ db: 1, 'customData.clients': 1 }).toArray()
      const changed = users
        .filter(({ db }) => isTenantName(db))
        .filter(({ customData }) => JSON.stringify(customData?.clients) !== JSON.stringify(desired))
      const rule = JSON.stringify(desired ?? 'all')
      if (changed.length === 0 && settled === rule) return
      // The server compares the restriction with each session's client at its next command, and logs out those that do not meet it.
      for (const { db } of changed) await changeUser(connection, db, { clients: desired ?? 'all' })
      await endWork(connection.watch, current)
      settled = rule
    },
    async includesOperator() {
      if (current === undefined) return true
      const { you } = (await connection.command('admin', { whatsmyuri: 1 })) as { you: string }
      return isAdmitted(current, addressIn(you))
    },
  }
}

interface Login {
  readonly db: string
  readonly customData?: { readonly clients?: readonly string[] }
}

/**
 * Ends what clients from other sources are doing: operations, and transactions, whose locks would last.
 * @throws MooringError `engine_unavailable` when operations remain after 4 s, or cannot be listed
 */
async function endWork(session: Session, sources: Admitted['engine']): Promise<void> {
  for (let round = 0; round < ROUNDS; round++) {
    const { operations, hidden } = await surveyOperations(session, { idleSessions: true })
    if (hidden.length > 0)
      throw new MooringError(EngineCode.unavailable, `operations of ${hidden.join(', ')} cannot be listed, nor ended`)
    const others = operations.filter(
      ({ client, effectiveUsers = [] }) =>
        client !== undefined && effectiveUsers.some(({ db }) => isTenantName(db)) && !isAdmitted(sources, addressIn(client)),
    )
    if (others.length === 0) return
    await killOperations(
      session,
      others.filter(({ type }) => type === 'op'),
    )
    const idle = others.filter(({ type, lsid }) => type === 'idleSession' && lsid !== undefined)
    const patterns = idle.map(({ lsid }) => ({ lsid: { id: lsid?.id as unknown, uid: lsid?.uid as unknown } }))
    if (patterns.length > 0) await session.command('admin', { killAllSessionsByPattern: patterns })
    await delay(PAUSE_MS)
  }
  throw new MooringError(EngineCode.unavailable, 'operations from sources that are not admitted are still running after 4 s')
}

/** Returns the address in the server's `address:port`, in which an IPv6 address may have brackets. */
const addressIn = (client: string): string => client.replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1')
