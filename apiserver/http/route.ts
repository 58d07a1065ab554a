import type { z } from 'zod'
import type { FieldError } from '../../shared/errors.ts'
import type { Caller } from '../../store/access.ts'
import type { IfMatch } from '../resources/conditional-writes.ts'

/** Source of server-sent events. */
export interface EventSource {
  /** Starts sending; `end` ends the answer. Returns the function that stops the source; it is called once, whichever side ended the stream. */
  readonly start: (send: (event: StreamedEvent) => void, end: () => void) => () => void
  /** Checks, with each heartbeat, whether the caller still has the right to read the events. */
  readonly isStillAuthorized: () => Promise<boolean>
}

/** Server-sent event (WHATWG HTML, "Server-sent events"); `data` is sent as JSON. */
export interface StreamedEvent {
  readonly id: string
  readonly event: string
  readonly data: unknown
}

export const LISTENERS = ['shared', 'dedicated'] as const
export type Listener = (typeof LISTENERS)[number]

/** Namespace of a request: slugs and the name of the Namespace object. */
export interface Scope {
  readonly organization: string
  readonly slug: string
  /** Name of the Namespace object, such as `acme--prod`. */
  readonly namespace: string
}

/** Authenticated caller. */
export interface Principal extends Caller {
  /** Home namespace that the credential names (an API token's own, or the claim `mooring_namespace`), such as `acme/prod`. */
  readonly home?: string | undefined
}

/** Input of a handler: parsed, typed, authenticated. An absent schema gives an empty object. */
export interface RouteRequest<P = unknown, Q = unknown, B = unknown> {
  readonly principal: Principal
  readonly params: P
  readonly query: Q
  readonly body: B
  readonly requestId: string
  /** Arrival time, as `performance.now()`; time budgets start there. */
  readonly arrivedAt: number
  readonly sourceIp: string
  /** Value of `Idempotency-Key` with a valid form; only on `idempotent` routes. */
  readonly idempotencyKey?: string | undefined
  /** resourceVersions that the caller accepts. */
  readonly ifMatch?: IfMatch | undefined
  /** Value of the header `Mooring-Namespace`, unchecked. */
  readonly namespaceHeader?: string | undefined
}

/** Result of a handler: rendered as `{"msg":"OK","data":…}`. */
export interface Reply<D = unknown> {
  readonly status: 200 | 201 | 202
  readonly data: D
  /** resourceVersion of the one resource in `data`. */
  readonly etag?: string | undefined
  /** Events that are sent instead of `data`. */
  readonly events?: EventSource | undefined
}

/**
 * Checks a raw body for errors that its schema cannot express. It also runs when the schema found errors, because an answer lists all errors at
 * once; zod skips its own refinements on a body with a list that is too long. `named` are the fields that already have an error; further errors
 * of these are dropped.
 */
export type BodyCheck = (body: object, named: ReadonlySet<string>) => readonly FieldError[]

/**
 * Declaration of a route. The express app, the 405 answers and the OpenAPI document are derived from the list of routes.
 * `path` is an OpenAPI template: `/v1/instances/{id}`. The request parser makes body and query strict at every depth.
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
  /** Details for OpenAPI, in Markdown. */
  readonly description?: string
  readonly params?: P
  readonly query?: Q
  readonly body?: B
  readonly checkBody?: BodyCheck
  /** Fields of the resource that a PATCH rejects, each with its error message ({@link fixedFields}). */
  readonly fixed?: FixedFields
  /** Creates a resource and honours `Idempotency-Key`. */
  readonly idempotent?: boolean
  /** Uses the caller's home namespace, so it honours the header `Mooring-Namespace`. */
  readonly home?: boolean
  /** May answer with server-sent events. */
  readonly streams?: boolean
  /** Honours `If-Match`. */
  readonly conditional?: boolean
  /** Schemas of `data` by success status. */
  readonly replies: Readonly<Partial<Record<200 | 201 | 202, z.ZodType>>>
  readonly handle: (request: RouteRequest<z.output<P>, z.output<Q>, z.output<B>>) => Promise<Reply>
}

/** Error messages by field. */
export type FixedFields = ReadonlyMap<string, string>

/**
 * Returns the fields that a PATCH cannot change, each with its error message: the fields of `view` and of `instead` that `patch` lacks.
 * `instead` says for a field what the caller can do instead, and adds fields that only a creation has.
 */
export function fixedFields(view: z.ZodObject, patch: z.ZodObject, instead: Readonly<Record<string, string>>): FixedFields {
  const names = new Set([...Object.keys(view.shape), ...Object.keys(instead)]).difference(new Set(Object.keys(patch.shape)))
  return new Map([...names].map((name) => [name, `cannot be changed: ${instead[name] ?? 'Mooring sets it'}`]))
}

/** Declares a route: the handler is typed by the schemas, the result is not generic. */
export function route<P extends z.ZodObject, Q extends z.ZodObject, B extends z.ZodObject>(definition: Route<P, Q, B>): AnyRoute {
  return definition
}

export type AnyRoute = Route

/**
 * Sorts path templates for matching: of two templates that match the same path, the one with a literal segment comes before the one with a parameter
 * (OpenAPI 3.1, "Paths Object").
 */
export function literalFirst(paths: Iterable<string>): readonly string[] {
  const shapeOf = (path: string): string => path.replaceAll(/[^/]+/g, (segment) => (segment.startsWith('{') ? '2' : '1'))
  return [...paths].sort((a, b) => (shapeOf(a) < shapeOf(b) ? -1 : Number(shapeOf(a) > shapeOf(b))))
}
