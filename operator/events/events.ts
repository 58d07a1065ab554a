import type { Logger } from 'pino'
import type { Kind, ObjectMeta } from '../../crds/kind.ts'

/** What went wrong with one object, for whoever looks at it. */
export interface Failure {
  readonly kind: Pick<Kind, 'group' | 'version' | 'kind'>
  readonly metadata: Pick<ObjectMeta, 'name' | 'namespace' | 'uid' | 'resourceVersion'>
  /** In CamelCase, of a bounded set: events are told apart by it. */
  readonly reason: string
  /** A sentence without secrets, for the owner of the object to read. */
  readonly note: string
}

/** Where failures are told: Kubernetes Events in a cluster, the log in embedded mode. Never throws and never holds the caller up. */
export interface Events {
  failure(failure: Failure): void
}

/** Tells failures to the log. */
export function createLogEvents(log: Pick<Logger, 'warn'>): Events {
  return {
    failure({ kind, metadata: { namespace, name }, reason, note }) {
      log.warn({ kind: kind.kind, namespace, name, reason }, note)
    },
  }
}
