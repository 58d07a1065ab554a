import { TunnelEndpoint } from '../../crds/tunnel-endpoint.ts'
import { ownerReferenceTo, type OwnerReference } from '../../crds/kind.ts'

/** Observed state of an endpoint's edges. */
export interface EdgeState {
  /** Number of edges that respond. */
  readonly ready: number
  /** Reason why no edge responds, for the `Ready` condition. */
  readonly message?: string | undefined
  /** Whether no edge responds and waiting will not help. */
  readonly isFailing?: boolean | undefined
  /** Reason why the edges have no address for clients and visitors yet. */
  readonly addressPending?: string | undefined
  /** Validity of the certificate for unknown hosts, RFC 3339 UTC. Absent where edges do not learn of it through the endpoint. */
  readonly strangersCertificate?: { readonly notBefore: string; readonly notAfter: string } | undefined
}

/** Runtime of the edges of endpoints: in this process, or as Deployments. */
export interface EdgeRuntime {
  /** Creates or updates the edges of an endpoint. Called at every reconcile. */
  ensure(endpoint: TunnelEndpoint): Promise<EdgeState>
  /** Removes what is left of a deleted endpoint. Absent where the runtime leaves nothing. */
  forget?(name: string): Promise<void>
  /**
   * Permits the edges to read the certificates of the endpoint's tunnels after their set has changed. Absent where edges need no
   * permission.
   */
  tunnelsChanged?(name: string): Promise<void>
  /** Calls `listener` with the name of an endpoint whose edges changed. @returns a function that unsubscribes */
  onChange(listener: (name: string) => void): () => void
}

/** Owner references to an endpoint: its objects are deleted with it. */
export function ownersOf(endpoint: Pick<TunnelEndpoint, 'metadata'>): OwnerReference[] {
  return [ownerReferenceTo(TunnelEndpoint, endpoint)]
}
