import { constants } from 'node:http2'
import { z } from 'zod'
import type { Kind } from '../../crds/kind.ts'
import { StoreError, type WatchEvent, type WatchOptions } from '../port.ts'
import type { ApiStream, KubernetesClient } from './client.ts'
import { collectionPath, labelSelector, resourceOf } from './resource.ts'
import { storeErrorOf } from './status.ts'

export interface WatchDeps {
  readonly client: KubernetesClient
  readonly random: () => number
  /** Time without data, bookmarks included, after which a watch counts as broken, in milliseconds. */
  readonly silentMs: number
}

/** Lifetime of a watch in seconds, chosen at random between these: watches that start together do not all restart together. */
const SHORTEST_S = 300
const LONGEST_S = 600

const Event = z.object({ type: z.enum(['ADDED', 'MODIFIED', 'DELETED', 'BOOKMARK', 'ERROR']), object: z.unknown() })
const Bookmark = z.object({ metadata: z.object({ resourceVersion: z.string() }) })
const TYPES = { ADDED: 'added', MODIFIED: 'modified', DELETED: 'deleted' } as const

const watchOf = (kind: Kind, namespace?: string, query?: Readonly<Record<string, string | undefined>>) =>
  ({ method: 'GET', path: collectionPath(kind, namespace), query: { ...query, watch: 'true' } }) as const

/** Parses a line of a watch. @throws the StoreError of an ERROR event */
function eventOf<K extends Kind>(kind: K, line: string): WatchEvent<K> {
  const { type, object } = Event.parse(JSON.parse(line))
  if (type === 'BOOKMARK') return { type: 'bookmark', resourceVersion: Bookmark.parse(object).metadata.resourceVersion }
  if (type === 'ERROR') throw storeErrorOf({ status: 500, body: object }, { kind, request: watchOf(kind) })
  return { type: TYPES[type], object: resourceOf(kind, object) }
}

/** Opens a watch. @throws StoreError `gone` for a revision that the API server rejects, `unavailable` */
async function started(deps: WatchDeps, kind: Kind, { signal, ...options }: WatchOptions): Promise<ApiStream> {
  const { client, random } = deps
  // Without a revision an API server would begin with synthetic additions of all existing objects.
  if (options.resourceVersion === '') throw new StoreError('gone', 'a watch needs a revision to start from: list first')
  const query = {
    allowWatchBookmarks: 'true',
    resourceVersion: options.resourceVersion,
    timeoutSeconds: String(Math.round(SHORTEST_S + random() * (LONGEST_S - SHORTEST_S))),
    labelSelector: labelSelector(options.labels),
  }
  const request = watchOf(kind, options.namespace, query)
  const answer = await client.open(request, signal)
  if (answer.status === 200) return answer
  const text = (await Array.fromAsync(lines(answer.stream))).join('\n')
  const error = storeErrorOf({ status: answer.status, body: parsed(text) }, { kind, namespace: options.namespace, request })
  throw error.code === 'invalid' ? new StoreError('gone', 'the revision is not of this store', { cause: error }) : error
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Implements `watch` of the port. Ends without an error when the signal aborts or the API server ends the watch at its timeout. */
export async function* watchKind<K extends Kind>(deps: WatchDeps, kind: K, options: WatchOptions): AsyncGenerator<WatchEvent<K>> {
  const stopped = (): boolean => options.signal.aborted
  if (stopped()) return
  try {
    const { stream } = await started(deps, kind, options)
    stream.setTimeout(deps.silentMs, () => {
      stream.destroy(new Error(`no data for ${deps.silentMs} ms`))
    })
    for await (const line of lines(stream)) {
      yield eventOf(kind, line)
      if (stopped()) return
    }
    if (stream.rstCode !== constants.NGHTTP2_NO_ERROR) throw new Error('the watch was cut off')
  } catch (error) {
    if (stopped()) return
    if (error instanceof StoreError) throw error
    throw new StoreError('unavailable', `the watch of ${kind.plural} broke`, { cause: error })
  }
}

const LINE_FEED = 0x0a

/** Yields the non-empty lines of a UTF-8 byte stream. The last line may lack its line feed. */
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
