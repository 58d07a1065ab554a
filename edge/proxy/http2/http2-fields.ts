/** Connection-specific fields, which an HTTP/2 message must not have (RFC 9113, section 8.2.2). */
const CONNECTION_FIELDS = new Set(['connection', 'keep-alive', 'proxy-connection', 'transfer-encoding', 'upgrade'])

/** Whether a field, its name in lower case, is connection-specific. `TE: trailers` is allowed. */
export const isOfConnection = (name: string, value: string): boolean =>
  CONNECTION_FIELDS.has(name) || (name === 'te' && value.toLowerCase() !== 'trailers')

/** Returns names and values in turn, with names in lower case and without fields that HTTP/2 forbids: Node throws at any of those. */
export function streamFields(fields: Iterable<readonly [string, string]>): string[] {
  const raw: string[] = []
  for (const [name, value] of fields) {
    const lower = name.toLowerCase()
    if (!isOfConnection(lower, value) && lower !== 'http2-settings') raw.push(lower, value)
  }
  return raw
}

/** Converts the list for functions of Node that take an object. It has no prototype: a field may have any name. */
export function fieldObject(raw: readonly string[]): Record<string, string[]> {
  const fields = Object.create(null) as Record<string, string[]>
  for (let index = 0; index + 1 < raw.length; index += 2) (fields[raw[index] ?? ''] ??= []).push(raw[index + 1] ?? '')
  return fields
}
