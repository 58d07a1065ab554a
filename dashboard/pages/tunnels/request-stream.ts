import { useEffect, useRef, useState } from 'preact/hooks'
import { ApiFailure, call, query, streamUrl } from '../../api/client.ts'
import type { TunnelRequest } from '../../api/types.ts'
import { createTail, KEPT, type Tail } from '../../live-tail.ts'

export type StreamState = 'connecting' | 'live' | 'interrupted'

export interface RequestStream {
  readonly requests: readonly TunnelRequest[]
  readonly state: StreamState
  readonly failure: ApiFailure | undefined
  readonly isPaused: boolean
  /** Requests that arrived since the pause. */
  readonly missed: number
  readonly pause: (paused: boolean) => void
}

/** Filters of the request log, by their names in the API. */
export type Filters = Readonly<Record<'method' | 'statusClass' | 'sourceIp' | 'pathPrefix' | 'origin', string>>

/** Follows the requests of a tunnel: first the newest of the log, then those of the stream. Renders at most once per frame. */
export function useRequestStream(path: string, filters: Filters): RequestStream {
  const tail = useRef<Tail<TunnelRequest>>(undefined)
  tail.current ??= createTail<TunnelRequest>()
  const [, paint] = useState(0)
  const [state, setState] = useState<StreamState>('connecting')
  const [failure, setFailure] = useState<ApiFailure>()
  const [isPaused, setPaused] = useState(false)
  const search = query(filters)

  useEffect(() => {
    const current = tail.current
    if (!current) return
    const repaint = () => paint((count) => count + 1)
    const stop = new AbortController()
    let frame = 0
    const schedule = () => {
      frame ||= requestAnimationFrame(() => {
        frame = 0
        current.flush()
        repaint()
      })
    }
    current.clear()
    setState('connecting')
    setFailure(undefined)
    const first = call<{ requests: readonly TunnelRequest[] }>('GET', `${path}${query({ ...filters, limit: '100' })}`, {
      signal: stop.signal,
    })
    first.then(
      ({ data }) => {
        current.seed(data.requests)
        repaint()
        open()
      },
      (error: unknown) => {
        if (error instanceof ApiFailure) setFailure(error)
      },
    )
    let source: EventSource | undefined
    function open(): void {
      if (stop.signal.aborted) return
      source = new EventSource(streamUrl(`${path}${query({ ...filters, follow: 'true' })}`))
      source.addEventListener('open', () => setState('live'))
      source.addEventListener('error', () => setState('interrupted'))
      source.addEventListener('request', ({ data }: MessageEvent<string>) => {
        current?.push(JSON.parse(data) as TunnelRequest)
        schedule()
      })
    }
    return () => {
      stop.abort()
      source?.close()
      cancelAnimationFrame(frame)
    }
  }, [path, search])

  const pause = (paused: boolean) => {
    tail.current?.pause(paused)
    tail.current?.flush()
    setPaused(paused)
  }
  return { requests: tail.current.shown.slice(0, KEPT), state, failure, isPaused, missed: tail.current.missed, pause }
}
