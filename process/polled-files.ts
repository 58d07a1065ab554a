import { isDeepStrictEqual } from 'node:util'
import type { Logger } from 'pino'

/** Poll interval in milliseconds. Short against the minute that the kubelet needs to update a mounted Secret. */
const POLL_MS = 10_000

/** Current content of mounted files. Disposing stops the polling. */
export interface PolledFiles<Content> extends Disposable {
  current(): Content
  /** Registers a handler that runs after each change that could be read; other changes are retried at the next poll. */
  onChange(handler: (content: Content) => void): void
  /** Reads the files now; the timer calls this. */
  poll(): Promise<void>
}

interface Deps<Content> {
  /**
   * Reads and checks all files: files read between two writes may not match each other.
   * @throws Error when the content is not usable
   */
  readonly read: () => Promise<Content>
  /** Log lines for a change and for a failed poll. */
  readonly says: { readonly changed: string; readonly failed: string }
  readonly log: Pick<Logger, 'info' | 'error'>
  /** Poll interval in milliseconds. */
  readonly everyMs?: number | undefined
}

/**
 * Reads mounted files and polls them for changes. The previous content stays in use while the files are not usable.
 * @throws the error of `read` when the first read fails
 */
export async function pollFiles<Content>({ read, says, log, everyMs = POLL_MS }: Deps<Content>): Promise<PolledFiles<Content>> {
  const handlers: ((content: Content) => void)[] = []
  let known = await read()

  async function poll(): Promise<void> {
    try {
      const now = await read()
      if (isDeepStrictEqual(now, known)) return
      known = now
      log.info(says.changed)
      for (const handler of handlers) handler(now)
    } catch (error) {
      log.error({ err: error }, says.failed)
    }
  }

  const timer = setInterval(() => void poll(), everyMs).unref()
  return {
    current: () => known,
    onChange: (handler) => void handlers.push(handler),
    poll,
    [Symbol.dispose]: () => clearInterval(timer),
  }
}
