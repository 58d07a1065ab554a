const DECIMAL = /^(0|[1-9]\d*)$/

/**
 * Whether resourceVersion `a` is certainly older than `b`. Revisions are opaque by contract, but decimal in practice: decimal revisions are
 * compared as numbers of any length; for others the result is false.
 */
export function isOlder(a: string, b: string): boolean {
  if (!DECIMAL.test(a) || !DECIMAL.test(b)) return false
  return a.length === b.length ? a < b : a.length < b.length
}
