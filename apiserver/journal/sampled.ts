import type { StreamedEvent } from '../http/route.ts'

const SECOND_MS = 1_000

/** Sender of at most a number of events a second. */
export interface Sampled {
  /** Sends the event that `make` returns, or counts it as skipped. */
  offer(make: () => StreamedEvent): void
  stop(): void
}

/** Creates a {@link Sampled}. At the end of each second in which it skipped events it sends an event `skipped` with their count. */
export function createSampled(send: (event: StreamedEvent) => void, perSecond: number): Sampled {
  let sent = 0
  let skipped = 0
  let lastId = ''
  const timer = setInterval(() => {
    if (skipped > 0) send({ id: lastId, event: 'skipped', data: { count: skipped } })
    sent = 0
    skipped = 0
  }, SECOND_MS)

  return {
    offer(make) {
      if (sent >= perSecond) {
        skipped += 1
        return
      }
      sent += 1
      const event = make()
      lastId = event.id
      send(event)
    },
    stop: () => clearInterval(timer),
  }
}
