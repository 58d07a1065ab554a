import { hasBody, type RequestHead } from '../head/request-head.ts'

type Head = Pick<RequestHead, 'method' | 'upgrade' | 'framing'>

/** RFC 9110, section 9.2.2. */
const IDEMPOTENT = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE', 'TRACE'])
/** Methods whose body many servers do not look at: what they took for a request would be answered on the same channel. */
const BODILESS = new Set(['GET', 'HEAD', 'OPTIONS', 'DELETE', 'TRACE'])

/** Whether a request that was sent whole may be sent once more. */
export const isReplayable = (head: Head): boolean => head.upgrade === undefined && !hasBody(head) && IDEMPOTENT.has(head.method)

/** Whether another request can follow this one on its channel, once both are over. */
export const leavesReusableConnection = (head: Head): boolean => !(hasBody(head) && BODILESS.has(head.method))
