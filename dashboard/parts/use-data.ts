import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { ApiFailure, call } from '../api/client.ts'

export interface Loaded<D> {
  readonly data: D | undefined
  readonly etag: string | null
  readonly failure: ApiFailure | undefined
  /** Reads again, at once. */
  readonly reload: () => void
}

export interface LoadOptions {
  /** Interval of reads while the page is visible; once when absent. */
  readonly everyMs?: number | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
}

const RETRY_MS = 4_000

interface State<D> extends Omit<Loaded<D>, 'reload'> {
  readonly path: string | undefined
}

/** Reads a path of the REST API, again at an interval, and after failures of the connection. Undefined reads nothing. */
export function useData<D>(path: string | undefined, { everyMs, headers }: LoadOptions = {}): Loaded<D> {
  const [state, setState] = useState<State<D>>({ path, data: undefined, etag: null, failure: undefined })
  const [round, setRound] = useState(0)
  const kept = useRef(headers)
  kept.current = headers

  useEffect(() => {
    if (path === undefined) return
    const stop = new AbortController()
    let timer: ReturnType<typeof setTimeout> | undefined
    const again = (ms: number | undefined) => {
      if (ms !== undefined && !stop.signal.aborted) timer = setTimeout(() => void load(), ms)
    }
    async function load(): Promise<void> {
      if (document.hidden && everyMs !== undefined) {
        again(everyMs)
        return
      }
      try {
        const { data, etag } = await call<D>('GET', path ?? '', { signal: stop.signal, headers: kept.current })
        setState({ path, data, etag, failure: undefined })
        again(everyMs)
      } catch (error) {
        if (!(error instanceof ApiFailure)) return
        setState((before) => ({ ...(before.path === path ? before : { path, data: undefined, etag: null }), failure: error }))
        again(isPassing(error) ? RETRY_MS : undefined)
      }
    }
    void load()
    return () => {
      stop.abort()
      clearTimeout(timer)
    }
  }, [path, everyMs, round])

  const reload = useCallback(() => setRound((count) => count + 1), [])
  const current = state.path === path ? state : { data: undefined, etag: null, failure: undefined }
  return { data: current.data, etag: current.etag, failure: current.failure, reload }
}

const isPassing = ({ status }: ApiFailure): boolean => status === 0 || status === 429 || status >= 500

/** Returns the time, renewed at an interval, for relative times. */
export function useNow(everyMs = 10_000): number {
  const [now, setNow] = useState(Date.now())
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), everyMs)
    return () => clearInterval(timer)
  }, [everyMs])
  return now
}

export interface Action {
  readonly isBusy: boolean
  readonly failure: ApiFailure | undefined
  /** Runs one change at a time; its failure shows until the next. Returns whether it succeeded. */
  readonly run: (change: () => Promise<unknown>) => Promise<boolean>
}

/** State of a change that the user starts. */
export function useAction(): Action {
  const [isBusy, setBusy] = useState(false)
  const [failure, setFailure] = useState<ApiFailure>()
  const run = async (change: () => Promise<unknown>): Promise<boolean> => {
    if (isBusy) return false
    setBusy(true)
    setFailure(undefined)
    try {
      await change()
      return true
    } catch (error) {
      if (!(error instanceof ApiFailure)) throw error
      setFailure(error)
      return false
    } finally {
      setBusy(false)
    }
  }
  return { isBusy, failure, run }
}
