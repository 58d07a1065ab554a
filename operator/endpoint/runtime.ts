import type { TunnelEndpoint } from '../../crds/tunnel-endpoint.ts'

/** What came of an endpoint's edges. */
export interface EdgeState {
  /** Edges that answer. */
  readonly ready: number
  /** Why there are none, for people. */
  readonly message?: string | undefined
  /** There are none, and to wait is of no use. */
  readonly isFailing?: boolean | undefined
  /** From when until when the certificate for unknown hosts is good, RFC 3339 UTC. Absent where edges do not learn of it by their endpoint. */
  readonly strangersCertificate?: { readonly notBefore: string; readonly notAfter: string } | undefined
}

/** How the edges of an endpoint run: in this process, or as a Deployment. */
export interface EdgeRuntime {
  /** Makes them as the endpoint wants them. Called at every look. */
  ensure(endpoint: TunnelEndpoint): Promise<EdgeState>
  /** An endpoint is gone, or going. Absent where nothing is left of it by then. */
  forget?(name: string): Promise<void>
  /** Tunnels came to an endpoint, or left it: its edges are given their certificates. Absent where nothing hangs on that. */
  tunnelsChanged?(name: string): Promise<void>
  /** Calls `listener` with the name of an endpoint whose edges changed. Returns how to stop that. */
  onChange(listener: (name: string) => void): () => void
}
