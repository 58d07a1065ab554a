/**
 * Yields what `source` yields and ends as soon as `signal` aborts, even when the source hangs and never notices.
 * @throws what the source throws before that
 */
export async function* untilAborted<T>(source: AsyncIterable<T>, signal: AbortSignal): AsyncGenerator<T, void, undefined> {
  const iterator = source[Symbol.asyncIterator]()
  // One listener for all rounds: a promise raced anew each time would keep every round's reactions alive.
  let stop: () => void = () => undefined
  const onAbort = () => {
    stop()
  }
  signal.addEventListener('abort', onAbort)
  try {
    while (!signal.aborted) {
      const next = await new Promise<IteratorResult<T, unknown>>((resolve, reject) => {
        stop = () => {
          resolve({ done: true, value: undefined })
        }
        iterator.next().then(resolve, reject)
      })
      if (next.done) return
      yield next.value
    }
  } finally {
    signal.removeEventListener('abort', onAbort)
    // Not awaited: a source that hangs in next() hangs in return() too.
    iterator.return?.().catch(() => undefined)
  }
}
