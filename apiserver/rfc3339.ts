/** A time of Kubernetes (whole seconds) in the form of the API: RFC 3339, UTC, milliseconds. */
export function withMilliseconds(timestamp: string): string {
  return new Date(timestamp).toISOString()
}
