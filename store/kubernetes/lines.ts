const LINE_FEED = 0x0a

/** The lines of a UTF-8 byte stream, empty ones left out; a last line may lack its line feed. */
export async function* lines(source: AsyncIterable<Buffer>): AsyncGenerator<string> {
  let rest: Buffer[] = []
  for await (const chunk of source) {
    let from = 0
    for (let to = chunk.indexOf(LINE_FEED); to >= 0; to = chunk.indexOf(LINE_FEED, from)) {
      const line = Buffer.concat([...rest, chunk.subarray(from, to)]).toString()
      rest = []
      from = to + 1
      if (line !== '') yield line
    }
    if (from < chunk.length) rest.push(chunk.subarray(from))
  }
  const last = Buffer.concat(rest).toString()
  if (last !== '') yield last
}
