/** Maximum numbers of attempts under way. They keep a slow receiver, or a tenant with many, from delaying other tenants. */
export const SLOTS = { total: 1_024, perNamespace: 32, perWebhook: 8 }

export interface Slots {
  /** Returns the number of free slots in total. */
  readonly free: () => number
  /** Returns the ids of the deliveries that have a slot. */
  readonly underWay: () => readonly string[]
  /** Returns the uids of the webhooks that get no further slot now, because of their own limit or that of their namespace. */
  readonly busy: () => readonly string[]
  /** Takes a slot for a delivery. Returns the function that releases the slot; undefined when none is free or the delivery has one already. */
  readonly take: (delivery: {
    readonly id: string
    readonly webhook: string
    readonly namespace: string
  }) => (() => void) | undefined
}

/** Creates the slots. `webhooksIn` returns the uids of a namespace's webhooks. */
export function createSlots(webhooksIn: (namespace: string) => readonly string[], limits = SLOTS): Slots {
  const deliveries = new Set<string>()
  const perWebhook = new Map<string, number>()
  const perNamespace = new Map<string, number>()

  const add = (counts: Map<string, number>, key: string, by: 1 | -1) => {
    const count = (counts.get(key) ?? 0) + by
    if (count === 0) counts.delete(key)
    else counts.set(key, count)
  }
  const fullOf = (counts: ReadonlyMap<string, number>, max: number) =>
    [...counts].filter(([, count]) => count >= max).map(([key]) => key)

  return {
    free: () => limits.total - deliveries.size,
    underWay: () => [...deliveries],
    busy: () => [...fullOf(perWebhook, limits.perWebhook), ...fullOf(perNamespace, limits.perNamespace).flatMap(webhooksIn)],
    take({ id, webhook, namespace }) {
      const isFull =
        (perWebhook.get(webhook) ?? 0) >= limits.perWebhook || (perNamespace.get(namespace) ?? 0) >= limits.perNamespace
      if (isFull || deliveries.has(id) || deliveries.size >= limits.total) return undefined
      deliveries.add(id)
      add(perWebhook, webhook, 1)
      add(perNamespace, namespace, 1)
      return () => {
        deliveries.delete(id)
        add(perWebhook, webhook, -1)
        add(perNamespace, namespace, -1)
      }
    },
  }
}
