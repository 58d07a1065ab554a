import { workerData } from 'node:worker_threads'
import { createKeeper } from '../postgresql/keeper.ts'
import { loginFromDirectory } from '../postgresql/client.ts'
import { type ThreadHandler, serveThread } from '../serve-thread.ts'
import type { SpoolReply, SpoolRequest, SpoolStart } from './messages.ts'
import { createShipper } from './shipper.ts'
import { openSpoolStore } from './store.ts'

/** Runs the thread of a spool, which writes the files and ships them. `workerData` is a SpoolStart as JSON. */
function openSpoolThread({ directory, login, bytes }: SpoolStart): ThreadHandler<SpoolRequest, SpoolReply> {
  const counts = { shipped: 0, dropped: 0, droppedEvents: 0, refused: 0 }
  let away: { readonly since: number; readonly failure: string } | undefined
  let disk = ''
  const store = openSpoolStore({
    directory,
    bytes,
    onDropped: (what, records) => (counts[what === 'events' ? 'droppedEvents' : 'dropped'] += records),
  })
  const { events, requests } = store
  const keeper = createKeeper(loginFromDirectory(login))
  const shipper = createShipper({
    logs: [events, requests],
    keeper,
    onShipped: (records) => (counts.shipped += records),
    onRefused: (records) => (counts.refused += records),
    onTry(error) {
      away = error === undefined ? undefined : { since: away?.since ?? performance.now(), failure: textOf(error) }
    },
    onDisk(error) {
      disk = error === undefined ? '' : textOf(error)
    },
  })
  // Ships the records of an earlier process.
  shipper.wake()

  async function close(): Promise<void> {
    await shipper.close()
    await keeper[Symbol.asyncDispose]()
    try {
      events.close()
    } finally {
      requests.close()
    }
  }

  return async (question) => {
    switch (question.type) {
      case 'keep':
        store.keep(question)
        shipper.wake()
        return { type: 'done' }
      case 'sync':
        await events.sync()
        return { type: 'done' }
      case 'state': {
        const awayMs = away ? performance.now() - away.since : 0
        const waiting = events.records + requests.records
        return { type: 'state', waiting, awayMs, failure: away?.failure ?? '', disk, ...counts }
      }
      case 'journal':
        return { type: 'journal', identity: await keeper.identity() }
      case 'drain':
        await shipper.drain(question.withinMs)
        return { type: 'done' }
      case 'close':
        await close()
        return { type: 'done' }
    }
  }
}

/** Returns the message of the cause, if any, which is more specific. Neither message has a secret. */
function textOf(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error
  return cause instanceof Error ? cause.message : String(cause)
}

serveThread(() => openSpoolThread(JSON.parse(String(workerData)) as SpoolStart))
