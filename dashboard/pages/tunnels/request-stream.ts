import { useEffect, useRef, useState } from 'preact/hooks'
import { type ApiFailure, call, query } from '../../api/client.ts'
import { followEvents, type StreamState } from '../../api/follow-events.ts'
import type { TunnelRequest } from '../../api/types.ts'
import { createTail, KEPT, type Tail } from '../../live-tail.ts'

/** Maximum of requests that the stream sends a second; a person reads fewer. */
const SAMPLE = 200
/** Time in milliseconds for which a count of skipped requests is shown. */
const SKIPPED_MS = 2_500

export interface RequestStream {
  readonly requests: readonly TunnelRequest[]
  readonly state: StreamState
  readonly failure: ApiFailure | undefined
  readonly isPaused: boolean
  /** Requests that arrived since the pause. */
  readonly missed: number
  /** What the page shows of the requests of the last second. Undefined while it shows all of them. */
  readonly sample: { readonly shown: number; readonly of: number } | undefined
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
  const [skipped, setSkipped] = useState(0)
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
    setSkipped(0)
    let fading: ReturnType<typeof setTimeout> | undefined
    const close = followEvents({
      path: `${path}${query({ ...filters, follow: 'true', sample: String(SAMPLE) })}`,
      async catchUp() {
        const log = `${path}${query({ ...filters, limit: '100' })}`
        const { data } = await call<{ requests: readonly TunnelRequest[] }>('GET', log, { signal: stop.signal })
        current.seed(data.requests)
        repaint()
      },
      onState: setState,
      onFailure: setFailure,
      events: {
        request(data) {
          current.push(data as TunnelRequest)
          schedule()
        },
        skipped(data) {
          clearTimeout(fading)
          setSkipped((data as { count: number }).count)
          fading = setTimeout(() => setSkipped(0), SKIPPED_MS)
        },
      },
    })
    return () => {
      stop.abort()
      close()
      clearTimeout(fading)
      cancelAnimationFrame(frame)
    }
  }, [path, search])

  const pause = (paused: boolean) => {
    tail.current?.pause(paused)
    tail.current?.flush()
    setPaused(paused)
  }
  const sample = skipped === 0 ? undefined : { shown: SAMPLE, of: SAMPLE + skipped }
  const { shown, missed } = tail.current
  return { requests: shown.slice(0, KEPT), state, failure, isPaused, missed, sample, pause }
}
