import type { Logger } from 'pino'
import type { Kind, ObjectMeta } from '../../crds/kind.ts'

/** Failure that concerns one object. */
export interface Failure {
  readonly kind: Pick<Kind, 'group' | 'version' | 'kind'>
  readonly metadata: Pick<ObjectMeta, 'name' | 'namespace' | 'uid' | 'resourceVersion'>
  /** CamelCase reason out of a bounded set: events are grouped by it. */
  readonly reason: string
  /** Sentence for the owner of the object, without secrets. */
  readonly note: string
}

/** Sink of failures: Kubernetes Events in a cluster, the log in embedded mode. Never throws and never blocks the caller. */
export interface Events {
  failure(failure: Failure): void
}

/** Creates a sink that writes failures to the log. */
export function createLogEvents(log: Pick<Logger, 'warn'>): Events {
  return {
    failure({ kind, metadata: { namespace, name }, reason, note }) {
      log.warn({ kind: kind.kind, namespace, name, reason }, note)
    },
  }
}
