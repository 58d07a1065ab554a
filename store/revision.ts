const DECIMAL = /^(0|[1-9]\d*)$/

/**
 * True when resourceVersion `a` is certainly older than `b`. Both are opaque by contract, but decimal in practice: then they compare as
 * numbers (of any length), else nothing is known and the answer is false.
 */
export function isOlder(a: string, b: string): boolean {
  if (!DECIMAL.test(a) || !DECIMAL.test(b)) return false
  return a.length === b.length ? a < b : a.length < b.length
}
