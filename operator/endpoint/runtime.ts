import type { TunnelEndpoint } from '../../crds/tunnel-endpoint.ts'

/** What came of an endpoint's edges. */
export interface EdgeState {
  /** Edges that answer. */
  readonly ready: number
  /** Why there are none, for people. */
  readonly message?: string | undefined
}

/** How the edges of an endpoint run: in this process, or as a Deployment. */
export interface EdgeRuntime {
  /** Makes them as the endpoint wants them. Called at every look. */
  ensure(endpoint: TunnelEndpoint): Promise<EdgeState>
  /** Calls `listener` with the name of an endpoint whose edges changed. Returns how to stop that. */
  onChange(listener: (name: string) => void): () => void
}
