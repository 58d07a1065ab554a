import { Counter, Gauge, type Registry } from 'prom-client'
import type { LinkEnd } from './link.ts'

interface State {
  readonly links: number
  readonly channels: number
  readonly sessions: number
}

export interface MeshMetrics {
  ended(why: LinkEnd): void
}

/** Creates the metrics of the links between edges. */
export function createMeshMetrics(registry: Registry, state: () => State): MeshMetrics {
  const registers = [registry]
  const gauge = (name: string, help: string, value: (state: State) => number) =>
    new Gauge({
      ...{ name, help, registers },
      collect() {
        this.set(value(state()))
      },
    })
  gauge('mooring_edge_mesh_links', 'Links of this edge to other edges of the endpoint.', ({ links }) => links)
  gauge('mooring_edge_mesh_channels', 'Channels between this edge and others.', ({ channels }) => channels)
  gauge('mooring_edge_mesh_sessions', 'Sessions of other edges that this one can reach.', ({ sessions }) => sessions)
  const ends = new Counter({
    name: 'mooring_edge_mesh_link_ends_total',
    help: 'Links to other edges that have ended.',
    labelNames: ['reason'],
    registers,
  })
  return { ended: (why) => ends.inc({ reason: why }) }
}
