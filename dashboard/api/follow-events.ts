import { ApiFailure, streamUrl } from './client.ts'

export type StreamState = 'connecting' | 'live' | 'interrupted'

/** Wait before another connection in milliseconds; it doubles with each that fails. */
const WAIT_MS = { first: 2_000, longest: 30_000 }
/** Time after which a page that is not visible gives its connection back: browsers have six for a host. */
const HIDDEN_MS = 30_000

export interface Followed {
  /** Path in the API, with its query. */
  readonly path: string
  /** Receivers of the events, by name, with the parsed data. */
  readonly events: Readonly<Record<string, (data: unknown) => void>>
  /** Reads what was recorded while no stream was open. Called after each connection, and to learn why one was refused. @throws ApiFailure */
  readonly catchUp: () => Promise<void>
  readonly onState: (state: StreamState) => void
  /** Called when the API rejects the stream, so that it does not connect again. */
  readonly onFailure: (failure: ApiFailure) => void
}

/**
 * Follows a stream of server-sent events until the returned function is called. `EventSource` itself connects again only after a lost connection; here a
 * refused one (too many streams, a restart) is repeated too. A hidden page is disconnected and connects again when it shows.
 */
export function followEvents({ path, events, catchUp, onState, onFailure }: Followed): () => void {
  let source: EventSource | undefined
  let timer: ReturnType<typeof setTimeout> | undefined
  let hiding: ReturnType<typeof setTimeout> | undefined
  let waitMs = WAIT_MS.first
  let isOver = false

  function open(): void {
    close()
    const opened = new EventSource(streamUrl(path))
    source = opened
    opened.addEventListener('open', () => {
      waitMs = WAIT_MS.first
      onState('live')
      // The stream is open: a request that this read misses arrives there.
      catchUp().catch(ignore)
    })
    opened.addEventListener('error', () => {
      if (isOver) return
      onState('interrupted')
      if (opened.readyState === EventSource.CLOSED) void repeat()
    })
    for (const [name, receive] of Object.entries(events)) {
      opened.addEventListener(name, ({ data }: MessageEvent<string>) => receive(JSON.parse(data)))
    }
  }

  async function repeat(): Promise<void> {
    close()
    try {
      await catchUp()
    } catch (error) {
      if (error instanceof ApiFailure && isFinal(error)) {
        if (!isOver) onFailure(error)
        return
      }
    }
    if (isOver || document.hidden) return
    timer = setTimeout(open, waitMs)
    waitMs = Math.min(waitMs * 2, WAIT_MS.longest)
  }

  function close(): void {
    clearTimeout(timer)
    source?.close()
    source = undefined
  }

  function onVisibility(): void {
    clearTimeout(hiding)
    if (document.hidden) hiding = setTimeout(close, HIDDEN_MS)
    else if (!source) open()
  }

  document.addEventListener('visibilitychange', onVisibility)
  open()
  return () => {
    isOver = true
    document.removeEventListener('visibilitychange', onVisibility)
    clearTimeout(hiding)
    close()
  }
}

const ignore = (): void => undefined

/** Whether a repetition cannot succeed: the request is wrong, or the caller may not read any more. */
const isFinal = ({ status }: ApiFailure): boolean => status >= 400 && status < 500 && status !== 408 && status !== 429
