import type { EndpointSlice } from '../../crds/core.ts'
import type { Cache } from '../../store/cache.ts'

/** Address at which another edge of the endpoint accepts links. */
export interface PeerAddress {
  /** Name of the edge's pod; the address, where the name is not known. */
  readonly name: string
  readonly host: string
  readonly port: number
}

const PORT_NAME = 'mesh'

/** Returns every edge in the EndpointSlices of an endpoint's mesh Service, ready or not. Pure. */
export function peersOf(slices: readonly EndpointSlice[]): readonly PeerAddress[] {
  const found = new Map<string, PeerAddress>()
  for (const { endpoints, ports } of slices) {
    const port = (ports ?? []).find(({ name }) => name === PORT_NAME || name === undefined || name === null)?.port
    if (typeof port !== 'number') continue
    for (const { addresses, targetRef } of endpoints ?? []) {
      const [host] = addresses
      if (host !== undefined) found.set(`${host} ${port}`, { name: targetRef?.name ?? `${host}:${port}`, host, port })
    }
  }
  return [...found.values()]
}

/** Peers of an edge as its caches know them; `onChange` returns the unsubscribe function. */
export interface Peers {
  list(): readonly PeerAddress[]
  onChange(listener: () => void): () => void
}

export function peersIn(slices: Cache<typeof EndpointSlice>): Peers {
  return { list: () => peersOf(slices.list()), onChange: (listener) => slices.onChange(listener) }
}
