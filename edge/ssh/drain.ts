/** Client that is asked to reconnect to another edge. */
export interface DrainingClient {
  /** Whether visitors use its channels. */
  readonly busy: boolean
  /** Stops new requests to the client; those in progress continue. */
  retire(): void
  /** Allows new requests again, unless another client of its tunnel is connected. */
  restore(): void
  /** Ends the connection; the client then reconnects. */
  dismiss(): void
}

export interface DrainPlan {
  /** Maximum time in which all clients are retired, one after the other, in milliseconds: their reconnects are spread over it. */
  readonly overMs: number
  /** Maximum wait for requests of a client after it was retired, in milliseconds. */
  readonly patienceMs: number
}

interface DrainState {
  readonly since: number
  restored: boolean
}

const STEP_MS = 50
/**
 * Time in which a client with short requests can reconnect without an error for visitors: requests to a tunnel without a client are
 * held for longer (docs/limits.md, "Edge: HTTP").
 */
const GAP_MS = 1_000

/**
 * Drains all clients. Resolves when the last one was dismissed.
 *
 *     retired → dismissed                         its requests end within a second, as most do
 *     retired → restored → retired → dismissed    some requests take longer: the client serves others until patience is nearly over
 *
 * A client reconnects only after it was dismissed.
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
