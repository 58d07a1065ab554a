import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

interface Collection {
  /** `minor`: the young generation alone; `major`: the whole heap. */
  readonly type: 'minor' | 'major'
  /** `async`: in a later turn of the event loop; the returned promise resolves after it. */
  readonly execution: 'sync' | 'async'
  /** `last-resort`: returns all empty pages to the system, and takes several times as long. */
  readonly flavor?: 'regular' | 'last-resort'
}

let exposed: ((collection: Collection) => unknown) | undefined

/** Runs V8's garbage collector. */
export function collect(collection: Collection): unknown {
  exposed ??= expose()
  return exposed(collection)
}

function expose(): NonNullable<typeof exposed> {
  setFlagsFromString('--expose-gc')
  return runInNewContext('gc') as NonNullable<typeof exposed>
}
