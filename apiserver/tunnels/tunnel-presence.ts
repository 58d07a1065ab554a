import { MooringError } from '../../shared/errors.ts'
import type { Tunnel } from '../../crds/tunnel.ts'
import type { JournalReader } from '../../journal/port.ts'
import { rejectOnAbort, withinBudget } from '../resources/time-budget.ts'
import type { Presence } from './tunnel-view.ts'

/** Error codes of an unavailable journal, SQLite and PostgreSQL. */
export const JOURNAL_UNAVAILABLE: ReadonlySet<string> = new Set(['unavailable', 'journal_away'])

export interface PresenceLookupDeps {
  readonly journal: Pick<JournalReader, 'presence'>
  /** Maximum wait of an answer for the journal, in milliseconds. */
  readonly waitMs?: number
}

const WAIT_MS = 1_000

/** Reads the presence of several tunnels and returns the lookup for each. */
export type PresenceOf = (tunnels: readonly Tunnel[]) => Promise<(tunnel: Tunnel) => Presence>

/**
 * Creates the lookup of connected sessions. It reads the journal, which is current; while the journal is unavailable, it uses the tunnel's status,
 * which is some seconds old, so that requests about tunnels do not fail.
 */
export function createPresenceLookup({ journal, waitMs = WAIT_MS }: PresenceLookupDeps): PresenceOf {
  async function known(tunnels: readonly Tunnel[]): Promise<ReadonlyMap<string, Presence> | undefined> {
    try {
      return await withinBudget(waitMs, (signal) =>
        Promise.race([journal.presence(tunnels.map(({ metadata }) => metadata.uid)), rejectOnAbort(signal)]),
      )
    } catch (error) {
      if (error instanceof MooringError && JOURNAL_UNAVAILABLE.has(error.code)) return undefined
      throw error
    }
  }

  return async function presenceOf(tunnels) {
    const found = tunnels.length === 0 ? new Map<string, Presence>() : await known(tunnels)
    return (tunnel) => (found ? (found.get(tunnel.metadata.uid) ?? NOT_CONNECTED) : presenceInStatus(tunnel))
  }
}

const NOT_CONNECTED: Presence = { sessions: 0, lastConnectedAt: undefined }

function presenceInStatus({ status }: Tunnel): Presence {
  const at = status?.lastConnectedAt
  return { sessions: status?.sessions ?? 0, lastConnectedAt: at === undefined ? undefined : Date.parse(at) }
}
