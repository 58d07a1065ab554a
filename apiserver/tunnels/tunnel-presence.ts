import { MooringError } from '../../shared/errors.ts'
import type { Tunnel } from '../../crds/tunnel.ts'
import type { JournalReader } from '../../journal/port.ts'
import { withinBudget } from '../http/budget.ts'
import type { Presence } from './tunnel-view.ts'

/** Codes of a journal that cannot be read now: SQLite's and PostgreSQL's. */
export const JOURNAL_AWAY: ReadonlySet<string> = new Set(['unavailable', 'journal_away'])

export interface PresenceLookupDeps {
  readonly journal: Pick<JournalReader, 'presence'>
  /** Milliseconds that an answer waits for the journal. */
  readonly waitMs?: number
}

const WAIT_MS = 1_000

/** Answers for each of these tunnels, once it is known. */
export type PresenceOf = (tunnels: readonly Tunnel[]) => Promise<(tunnel: Tunnel) => Presence>

/**
 * Who is connected: from the journal, which knows at once, or while that is away, as the status of the tunnel had it some seconds ago. What
 * somebody does to a tunnel must not fail for it.
 */
export function createPresenceLookup({ journal, waitMs = WAIT_MS }: PresenceLookupDeps): PresenceOf {
  async function known(tunnels: readonly Tunnel[]): Promise<ReadonlyMap<string, Presence> | undefined> {
    try {
      return await withinBudget(waitMs, (signal) =>
        Promise.race([journal.presence(tunnels.map(({ metadata }) => metadata.uid)), rejectedBy(signal)]),
      )
    } catch (error) {
      if (error instanceof MooringError && JOURNAL_AWAY.has(error.code)) return undefined
      throw error
    }
  }

  return async function presenceOf(tunnels) {
    const found = tunnels.length === 0 ? new Map<string, Presence>() : await known(tunnels)
    return (tunnel) => (found ? (found.get(tunnel.metadata.uid) ?? NOBODY) : asStatusSays(tunnel))
  }
}

const NOBODY: Presence = { sessions: 0, lastConnectedAt: undefined }

function asStatusSays({ status }: Tunnel): Presence {
  const at = status?.lastConnectedAt
  return { sessions: status?.sessions ?? 0, lastConnectedAt: at === undefined ? undefined : Date.parse(at) }
}

function rejectedBy(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true })
  })
}
