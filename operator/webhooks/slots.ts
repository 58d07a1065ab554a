/**
 * Maximum numbers of attempts under way. They keep a slow receiver, or a tenant with many, from delaying other webhooks. `reserved` slots of a
 * namespace are for webhooks without an attempt under way; `slowPerNamespace` is for all slow webhooks of a namespace together.
 */
export const SLOTS = { total: 1_024, perNamespace: 32, reserved: 8, perWebhook: 8, slowPerNamespace: 8 }

/** Duration of the last attempt, in milliseconds, from which a webhook counts as slow. */
const SLOW_MS = 5_000
/** Number of webhooks whose pace is remembered. Beyond it all are forgotten, deleted webhooks among them. */
const PACES_MAX = 20_000

/** Takes back a slot. `durationMs`: duration of the attempt; undefined when there was no request. */
type Release = (durationMs?: number) => void

export interface Slots {
  /** Returns the number of free slots in total. */
  readonly free: () => number
  /** Returns the ids of the deliveries that have a slot. */
  readonly underWay: () => readonly string[]
  /** Returns the uids of the webhooks that get no further slot now. */
  readonly busy: () => readonly string[]
  /** Takes a slot for a delivery. Returns the function that releases the slot; undefined when none is free or the delivery has one already. */
  readonly take: (delivery: { readonly id: string; readonly webhook: string; readonly namespace: string }) => Release | undefined
}

/**
 * Creates the slots. `webhooksIn` returns the uids of a namespace's webhooks. A webhook has one attempt under way until its receiver has answered quickly;
 * then it may have `perWebhook`.
 */
export function createDeliverySlots(webhooksIn: (namespace: string) => readonly string[], limits = SLOTS): Slots {
  const deliveries = new Set<string>()
  /** Attempts under way, by webhook and by namespace, and those of slow webhooks by namespace. */
  const perWebhook = new Map<string, number>()
  const perNamespace = new Map<string, number>()
  const slowPerNamespace = new Map<string, number>()
  /** Namespaces of the webhooks that have attempts under way. */
  const namespaces = new Map<string, string>()
  /** Whether the last attempt of a webhook was slow. */
  const paces = new Map<string, 'fast' | 'slow'>()

  const countOf = (counts: ReadonlyMap<string, number>, key: string) => counts.get(key) ?? 0
  const add = (counts: Map<string, number>, key: string, by: 1 | -1) => {
    const count = countOf(counts, key) + by
    if (count === 0) counts.delete(key)
    else counts.set(key, count)
  }

  function hasRoom(webhook: string, namespace: string): boolean {
    const [own, all] = [countOf(perWebhook, webhook), countOf(perNamespace, namespace)]
    const pace = paces.get(webhook)
    if (own >= (pace === 'fast' ? limits.perWebhook : 1) || all >= limits.perNamespace) return false
    if (pace === 'slow' && countOf(slowPerNamespace, namespace) >= limits.slowPerNamespace) return false
    return (own === 0 && pace !== 'slow') || all < limits.perNamespace - limits.reserved
  }

  /** Whether a webhook of the namespace may have to wait although it has no attempt under way. */
  const isCrowded = (namespace: string): boolean =>
    countOf(perNamespace, namespace) >= limits.perNamespace - limits.reserved ||
    countOf(slowPerNamespace, namespace) >= limits.slowPerNamespace

  return {
    free: () => limits.total - deliveries.size,
    underWay: () => [...deliveries],
    busy() {
      const full = [...namespaces].filter(([webhook, namespace]) => !hasRoom(webhook, namespace)).map(([webhook]) => webhook)
      const crowded = [...perNamespace.keys()].filter(isCrowded)
      const others = crowded.flatMap((namespace) => webhooksIn(namespace).filter((webhook) => !hasRoom(webhook, namespace)))
      return [...new Set([...full, ...others])]
    },
    take({ id, webhook, namespace }) {
      if (deliveries.has(id) || deliveries.size >= limits.total || !hasRoom(webhook, namespace)) return undefined
      const isSlow = paces.get(webhook) === 'slow'
      const counted = (by: 1 | -1) => {
        add(perWebhook, webhook, by)
        add(perNamespace, namespace, by)
        if (isSlow) add(slowPerNamespace, namespace, by)
        if (perWebhook.has(webhook)) namespaces.set(webhook, namespace)
        else namespaces.delete(webhook)
      }
      deliveries.add(id)
      counted(1)
      return (durationMs) => {
        deliveries.delete(id)
        counted(-1)
        if (durationMs === undefined) return
        if (paces.size >= PACES_MAX) paces.clear()
        paces.set(webhook, durationMs < SLOW_MS ? 'fast' : 'slow')
      }
    },
  }
}
