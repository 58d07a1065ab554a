import type { z } from 'zod'
import type { FieldError } from '../../shared/errors.ts'
import type { Caller } from '../../store/access.ts'
import type { IfMatch } from './if-match.ts'

/** What is sent for as long as the caller listens. */
export interface EventSource {
  /** Begins; `end` ends the answer. Returns how to stop, which is called once, whoever ended it. */
  readonly start: (send: (event: StreamedEvent) => void, end: () => void) => () => void
  /** Asked with each heartbeat: whether the caller, whose token is still accepted, may go on listening. */
  readonly mayGoOn: () => Promise<boolean>
}

/** One server-sent event (WHATWG HTML, "Server-sent events"); `data` is sent as JSON. */
export interface StreamedEvent {
  readonly id: string
  readonly event: string
  readonly data: unknown
}

export const LISTENERS = ['shared', 'dedicated'] as const
export type Listener = (typeof LISTENERS)[number]

/** A namespace that a request is about: slugs and the Namespace object's name. */
export interface Scope {
  readonly organization: string
  readonly slug: string
  /** `acme--prod` */
  readonly namespace: string
}

/** Who called, as authentication found out. */
export interface Principal extends Caller {
  /** Home namespace that the credential itself names (an API token's own, or the claim `mooring_namespace`), as `acme/prod`. */
  readonly home?: string | undefined
}

/** What a handler gets: parsed, typed, authenticated. Absent schemas give an empty object. */
export interface RouteRequest<P = unknown, Q = unknown, B = unknown> {
  readonly principal: Principal
  readonly params: P
  readonly query: Q
  readonly body: B
  readonly requestId: string
  /** `performance.now()` at its arrival: what it may take is counted from there. */
  readonly arrivedAt: number
  readonly sourceIp: string
  /** Value of `Idempotency-Key`, checked for form; only on routes that are `idempotent`. */
  readonly idempotencyKey?: string | undefined
  /** The resourceVersions one of which the caller expects. */
  readonly ifMatch?: IfMatch | undefined
  /** Value of the header `Mooring-Namespace`, unchecked. */
  readonly namespaceHeader?: string | undefined
}

/** What a handler gives: rendered as `{"msg":"OK","data":…}`. */
export interface Reply<D = unknown> {
  readonly status: 200 | 201 | 202
  readonly data: D
  /** resourceVersion of the one resource in `data`. */
  readonly etag?: string | undefined
  /** Answered as server-sent events for as long as the caller listens, instead of `data`. */
  readonly events?: EventSource | undefined
}

/**
 * Says what is wrong of a body, as it came, that its schema cannot say; also of one that has other faults, for all are told at once. zod's own
 * refinements are not run on what has a list that is too long. `named` are the fields that have an error already: what else is said of these
 * is not told.
 */
export type BodyCheck = (body: object, named: ReadonlySet<string>) => readonly FieldError[]

/**
 * One route, as data: the express app, the 405 answers and OpenAPI are all derived from the list of these.
 * `path` is an OpenAPI template: `/v1/instances/{id}`. Body and query are made strict at every depth by whoever parses them.
 */
export interface Route<
  P extends z.ZodObject = z.ZodObject,
  Q extends z.ZodObject = z.ZodObject,
  B extends z.ZodObject = z.ZodObject,
> {
  readonly method: 'get' | 'post' | 'put' | 'patch' | 'delete'
  readonly path: string
  readonly on: readonly Listener[]
  /** Operation id in OpenAPI, in camel case. */
  readonly id: string
  readonly summary: string
  /** More than the summary says, in Markdown, for OpenAPI. */
  readonly description?: string
  readonly params?: P
  readonly query?: Q
  readonly body?: B
  readonly checkBody?: BodyCheck
  /** Creates something and honours `Idempotency-Key`. */
  readonly idempotent?: boolean
  /** Is about the caller's home namespace, so it honours the header `Mooring-Namespace`. */
  readonly home?: boolean
  /** May answer with server-sent events. */
  readonly streams?: boolean
  /** Honours `If-Match`. */
  readonly conditional?: boolean
  /** Success answers by status: the schema of `data`. */
  readonly replies: Readonly<Partial<Record<200 | 201 | 202, z.ZodType>>>
  readonly handle: (request: RouteRequest<z.output<P>, z.output<Q>, z.output<B>>) => Promise<Reply>
}

/** Declares a route; keeps the schemas' types for its handler and forgets them for the list. */
export function route<P extends z.ZodObject, Q extends z.ZodObject, B extends z.ZodObject>(definition: Route<P, Q, B>): AnyRoute {
  return definition
}

export type AnyRoute = Route

/**
 * Path templates in the order in which they are to be tried: of two that both match a path, the one with a literal segment where the other has a
 * parameter comes first (OpenAPI 3.1, "Paths Object").
 */
export function literalFirst(paths: Iterable<string>): readonly string[] {
  const shapeOf = (path: string): string => path.replaceAll(/[^/]+/g, (segment) => (segment.startsWith('{') ? '2' : '1'))
  return [...paths].sort((a, b) => (shapeOf(a) < shapeOf(b) ? -1 : Number(shapeOf(a) > shapeOf(b))))
}
