/** A client that is to go. */
export interface DrainingClient {
  /** Channels that visitors use. */
  readonly busy: boolean
  /** No visitor is led to it any more; those who are there stay. */
  retire(): void
  /** Visitors are led to it again, unless another client of its tunnel is there. */
  restore(): void
  /** Tells it to go. */
  dismiss(): void
}

export interface DrainPlan {
  /** In which all are retired, one after the other: they come back somewhere, and not all at once. At the most. */
  readonly overMs: number
  /** How long a visitor's request under way is waited for, from then on. */
  readonly patienceMs: number
}

interface DrainState {
  readonly since: number
  restored: boolean
}

const STEP_MS = 50
/** Visitors of a tunnel without a client are held for longer (surface, section 5, `tunnel_offline`): within it one whose requests are short can go and come back. */
const GAP_MS = 1_000

/**
 * Has all go. Resolves when the last was told to.
 *
 *     retired → dismissed                              its visitors are done within a second, as most are
 *     retired → restored → retired → dismissed         some take longer: meanwhile the tunnel serves the others, until patience is nearly over
 *
 * A client comes back only once it is told to go.
 */
export function drainEvenly(clients: readonly DrainingClient[], { overMs, patienceMs }: DrainPlan): Promise<void> {
  const began = performance.now()
  const waiting = [...clients]
  const draining = new Map<DrainingClient, DrainState>()

  function step(): void {
    const now = performance.now()
    const share = overMs <= 0 ? 1 : Math.min(1, (now - began + STEP_MS) / overMs)
    const due = waiting.splice(0, Math.ceil(share * clients.length) - (clients.length - waiting.length))
    for (const client of due) {
      client.retire()
      draining.set(client, { since: now, restored: false })
    }
    for (const [client, state] of draining) {
      if (staysOn(client, state, now - state.since)) continue
      draining.delete(client)
      client.dismiss()
    }
  }

  function staysOn(client: DrainingClient, state: DrainState, waitedMs: number): boolean {
    const restored = waitedMs >= GAP_MS && waitedMs < patienceMs - GAP_MS
    if (restored && state.restored) return true
    if (waitedMs >= patienceMs || (!state.restored && !client.busy)) return false
    if (restored !== state.restored) {
      state.restored = restored
      if (restored) client.restore()
      else client.retire()
    }
    return true
  }

  return new Promise((resolve) => {
    const timer = setInterval(round, STEP_MS)
    function round(): void {
      step()
      if (waiting.length + draining.size > 0) return
      clearInterval(timer)
      resolve()
    }
    round()
  })
}
