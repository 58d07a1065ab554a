import { randomBytes } from 'node:crypto'
import type { Logger } from 'pino'
import { Counter, type Registry } from 'prom-client'
import { type Kind, type ObjectMeta, apiVersionOf } from '../../crds/kind.ts'
import type { KubernetesClient } from '../../store/kubernetes/client.ts'

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

/** Maximum length of note and reason in Kubernetes (events.k8s.io/v1). */
const NOTE_MAX = 1_024
const REASON_MAX = 128
/** Maximum length of the object's name in an event's name; a random suffix follows. */
const NAME_MAX = 200
/** Time within which a repeated failure turns the event into a series (events.k8s.io/v1, "EventSeries"). */
const SERIES_MS = 600_000
/** Minimum interval between two writes of one series. */
const SERIES_WRITE_MS = 60_000
/** Maximum number of remembered failures. */
const KNOWN_MAX = 4_096
/** Maximum number of concurrent writes; more are dropped. */
const UNDER_WAY_MAX = 16
/** Namespace of events about cluster-scoped objects: Kubernetes allows no other. */
const OF_CLUSTER = 'default'

export interface KubernetesEventsDeps {
  readonly client: KubernetesClient
  /** Name of the reporting process. */
  readonly instance: string
  readonly registry: Registry
  readonly log: Pick<Logger, 'debug'>
  readonly now?: () => Date
}

/** Ongoing failure of one object. */
interface Known {
  readonly path: string
  count: number
  seen: number
  written: number
}

/**
 * Creates {@link Events} that are Kubernetes Events of type Warning, shown by `kubectl describe`. All of it is bounded: a repeated failure
 * only updates a series, each object and all objects together have a budget, and events that cannot be written are dropped and counted.
 */
export function createKubernetesEvents(deps: KubernetesEventsDeps): Events {
  const { client, log, now = () => new Date() } = deps
  const known = new Map<string, Known>()
  const mayWrite = createEventBudget()
  let underWay = 0
  const written = new Counter({
    name: 'mooring_events_total',
    help: 'Kubernetes Events by result: written, or dropped because of a limit or an error.',
    labelNames: ['result'],
    registers: [deps.registry],
  })

  function send(request: Parameters<KubernetesClient['request']>[0]): void {
    underWay += 1
    client.request(request).then(
      ({ status }) => {
        underWay -= 1
        written.inc({ result: status < 300 ? 'written' : 'dropped' })
        if (status >= 300) log.debug({ status }, 'an event was refused')
      },
      (error: unknown) => {
        underWay -= 1
        written.inc({ result: 'dropped' })
        log.debug({ err: error }, 'an event was not written')
      },
    )
  }

  const drop = () => written.inc({ result: 'dropped' })

  function again(event: Known, at: Date): void {
    event.count += 1
    event.seen = at.getTime()
    if (event.seen - event.written < SERIES_WRITE_MS || underWay >= UNDER_WAY_MAX) return
    event.written = event.seen
    const series = { count: event.count, lastObservedTime: micro(at) }
    send({ method: 'PATCH', path: event.path, contentType: 'application/merge-patch+json', body: { series } })
  }

  return {
    failure(failure) {
      const at = now()
      const id = JSON.stringify([failure.metadata.uid, failure.reason, failure.note])
      const event = known.get(id)
      if (event && at.getTime() - event.seen < SERIES_MS) {
        again(event, at)
        return
      }
      if (underWay >= UNDER_WAY_MAX || !mayWrite(failure.metadata.uid, at.getTime())) {
        drop()
        return
      }
      const body = eventOf(failure, { at, instance: deps.instance })
      const path = `/apis/events.k8s.io/v1/namespaces/${body.metadata.namespace}/events`
      known.delete(id)
      known.set(id, { path: `${path}/${body.metadata.name}`, count: 1, seen: at.getTime(), written: at.getTime() })
      if (known.size > KNOWN_MAX) for (const oldest of known.keys().take(1)) known.delete(oldest)
      send({ method: 'POST', path, body })
    },
  }
}

function eventOf({ kind, metadata, reason, note }: Failure, { at, instance }: { at: Date; instance: string }) {
  const { namespace, name, uid, resourceVersion } = metadata
  const eventName = `${name.slice(0, NAME_MAX).replace(/[.-]+$/, '')}.${randomBytes(8).toString('hex')}`
  return {
    apiVersion: 'events.k8s.io/v1',
    kind: 'Event',
    metadata: { namespace: namespace ?? OF_CLUSTER, name: eventName },
    type: 'Warning',
    reason: reason.slice(0, REASON_MAX),
    note: note.slice(0, NOTE_MAX),
    action: 'Reconcile',
    eventTime: micro(at),
    reportingController: 'mooring.dev/operator',
    reportingInstance: instance.slice(0, REASON_MAX),
    regarding: { apiVersion: apiVersionOf(kind), kind: kind.kind, namespace, name, uid, resourceVersion },
  }
}

/** Kubernetes MicroTime: RFC 3339 with exactly six fractional digits. */
const micro = (at: Date): string => at.toISOString().replace('Z', '000Z')

/** Token bucket: `burst` tokens at once, then one token every `refillMs`. */
export interface Rate {
  readonly burst: number
  readonly refillMs: number
}

/** Limits for the number of events. */
export interface BudgetLimits {
  /** Limit for events about one object. */
  readonly perObject: Rate
  /** Limit for all events. */
  readonly overall: Rate
  /** Number of remembered objects; above it the one with the oldest event is forgotten, and starts again with a full bucket. */
  readonly objects: number
}

const BUDGET: BudgetLimits = {
  perObject: { burst: 10, refillMs: 60_000 },
  overall: { burst: 100, refillMs: 200 },
  objects: 4_096,
}

interface Bucket {
  readonly left: number
  readonly at: number
}

/** Creates a function that consumes one event at `now` (monotonic milliseconds) and returns whether it may be written. */
export function createEventBudget(limits: BudgetLimits = BUDGET): (uid: string, now: number) => boolean {
  const objects = new Map<string, Bucket>()
  let overall: Bucket | undefined

  return function mayWrite(uid, now) {
    const own = taken(objects.get(uid), limits.perObject, now)
    const all = taken(overall, limits.overall, now)
    if (!own || !all) return false
    overall = all
    objects.delete(uid)
    objects.set(uid, own)
    if (objects.size > limits.objects) for (const oldest of objects.keys().take(1)) objects.delete(oldest)
    return true
  }
}

/** Bucket after one token was taken; undefined when it is empty. */
function taken(bucket: Bucket | undefined, { burst, refillMs }: Rate, now: number): Bucket | undefined {
  const left = bucket ? Math.min(burst, bucket.left + (now - bucket.at) / refillMs) : burst
  return left >= 1 ? { left: left - 1, at: now } : undefined
}
