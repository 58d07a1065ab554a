import { hasBody, type RequestHead } from '../head/request-head.ts'

type Head = Pick<RequestHead, 'method' | 'upgrade' | 'framing'>

/** Idempotent methods (RFC 9110, section 9.2.2). */
const IDEMPOTENT = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE', 'TRACE'])
/** Methods whose body many servers ignore: they would read it as the next request and answer it on the same channel. */
const BODILESS = new Set(['GET', 'HEAD', 'OPTIONS', 'DELETE', 'TRACE'])

/** Whether a completely sent request may be sent once more. */
export const isReplayable = (head: Head): boolean => head.upgrade === undefined && !hasBody(head) && IDEMPOTENT.has(head.method)

/** Whether the upstream connection can take another request after this one. */
export const leavesReusableConnection = (head: Head): boolean => !(hasBody(head) && BODILESS.has(head.method))
