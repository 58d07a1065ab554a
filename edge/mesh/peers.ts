import type { EndpointSlice } from '../../crds/core.ts'
import type { Cache } from '../../store/cache.ts'

/** Where another edge of the endpoint listens for its peers. */
export interface PeerAddress {
  /** Name of its pod; the address, where that is not known. */
  readonly name: string
  readonly host: string
  readonly port: number
}

const PORT_NAME = 'mesh'

/** Every edge that the slices of an endpoint's mesh Service name, ready or not: whether it answers is found out by asking. Pure. */
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

/** The peers of an edge as its caches know them; `onChange` returns how to stop that. */
export interface Peers {
  list(): readonly PeerAddress[]
  onChange(listener: () => void): () => void
}

export function peersIn(slices: Cache<typeof EndpointSlice>): Peers {
  return { list: () => peersOf(slices.list()), onChange: (listener) => slices.onChange(listener) }
}
