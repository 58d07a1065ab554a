import { ApiError, wrongField } from './errors.ts'

/** Versions that a header `If-Match` accepts: `*` for any existing one, or a list, possibly empty (RFC 9110, section 13.1.1). */
export type IfMatch = '*' | readonly string[]

/** Entity tag (RFC 9110, section 8.8.3), or its text without the quotes. */
const TAG = /(W\/)?"([\x21\x23-\x7e\x80-\xff]*)"|[\w.-]+/g

/**
 * Parses `"123"`, `123`, `"122", "123"` or `*`; undefined without the header. A weak tag never matches, so it is left out.
 * @throws ApiError `invalid_request`
 */
export function parseIfMatch(header: string | undefined): IfMatch | undefined {
  if (header === undefined) return undefined
  if (header.trim() === '*') return '*'
  const tags = [...header.matchAll(TAG)]
  const elements = header.replaceAll(TAG, 't').split(',')
  // Empty elements of a list are ignored (RFC 9110, section 5.6.1.2).
  const isList = elements.every((element) => ['', 't'].includes(element.trim()))
  if (tags.length > 0 && isList) return tags.flatMap(([all, weak, quoted = all]) => (weak === undefined ? [quoted] : []))
  throw wrongField('If-Match', 'must be entity tags, as the ETag of an answer, or *')
}

/** Whether the caller expects the current version of a resource; `resourceVersion` is undefined when the resource does not exist. */
export function isExpected(resourceVersion: string | undefined, ifMatch: IfMatch | undefined): boolean {
  if (ifMatch === undefined) return true
  return resourceVersion !== undefined && (ifMatch === '*' || ifMatch.includes(resourceVersion))
}

/** @throws ApiError `conflict` unless {@link isExpected} */
export function requireExpected(resourceVersion: string | undefined, ifMatch: IfMatch | undefined): void {
  if (!isExpected(resourceVersion, ifMatch))
    throw new ApiError('conflict', 'the resource is not at the version of If-Match; read it again, then repeat the change')
}
