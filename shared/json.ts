/** Parses JSON; undefined for other text, so that the caller's schema rejects it. */
export function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
