const FIELDS = 13
const NEWLINE = 10

/** Text of requests (request-text.ts) in pieces of at most `most` records, each with its number of records. */
export function splitRequests(text: string, most: number): readonly { readonly payload: Buffer; readonly records: number }[] {
  const bytes = Buffer.from(text)
  const pieces: { payload: Buffer; records: number }[] = []
  let [start, records, at] = [0, 0, 0]
  while (at < bytes.length) {
    at = recordEnd(bytes, at)
    records += 1
    if (records < most && at < bytes.length) continue
    pieces.push({ payload: bytes.subarray(start, at), records })
    start = at
    records = 0
  }
  return pieces
}

function recordEnd(bytes: Buffer, from: number): number {
  let at = from
  for (let field = 0; field < FIELDS; field += 1) {
    const end = bytes.indexOf(NEWLINE, at)
    if (end < 0) return bytes.length
    at = end + 1
  }
  return at
}
