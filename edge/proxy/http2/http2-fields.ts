/** Fields of one connection, which a message of HTTP/2 must not have (RFC 9113, section 8.2.2). */
const CONNECTION_FIELDS = new Set(['connection', 'keep-alive', 'proxy-connection', 'transfer-encoding', 'upgrade'])

/** Whether a field, its name in lower case, is of one connection. `TE: trailers` is the one that is not. */
export const isOfConnection = (name: string, value: string): boolean =>
  CONNECTION_FIELDS.has(name) || (name === 'te' && value.toLowerCase() !== 'trailers')

/** Names and values in turn, as HTTP/2 has them: in lower case, and without what it does not take. Node throws at any of those. */
export function streamFields(fields: Iterable<readonly [string, string]>): string[] {
  const raw: string[] = []
  for (const [name, value] of fields) {
    const lower = name.toLowerCase()
    if (!isOfConnection(lower, value) && lower !== 'http2-settings') raw.push(lower, value)
  }
  return raw
}

/** The same for calls of Node that take no list. It has no prototype: a field may have any name. */
export function fieldObject(raw: readonly string[]): Record<string, string[]> {
  const fields = Object.create(null) as Record<string, string[]>
  for (let index = 0; index + 1 < raw.length; index += 2) (fields[raw[index] ?? ''] ??= []).push(raw[index + 1] ?? '')
  return fields
}
