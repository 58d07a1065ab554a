import { workerData } from 'node:worker_threads'
import { createEventKeeper } from './events.ts'
import { createRequestKeeper } from './requests.ts'
import { openForWriting } from './layout.ts'
import type { WriterReply, WriterRequest } from './messages.ts'
import { retentionSteps } from './retention.ts'
import { type Answer, serveThread } from '../serve-thread.ts'
import { createTunnelNumbers } from './ids.ts'

/** Runs the thread of the one connection that writes. `workerData` is the path of the file. */
function openWriter(path: string): Answer<WriterRequest, WriterReply> {
  const db = openForWriting(path)
  const tunnels = createTunnelNumbers(db)
  const requests = createRequestKeeper(db, tunnels)
  const events = createEventKeeper(db, tunnels)
  let sweeping: ReturnType<typeof retentionSteps> | undefined

  function inTransaction<T>(act: () => T): T {
    db.exec('BEGIN IMMEDIATE')
    try {
      const result = act()
      db.exec('COMMIT')
      return result
    } catch (error) {
      // SQLite has rolled back by itself after some errors (disk full), but not after all.
      if (db.isTransaction) db.exec('ROLLBACK')
      tunnels.forget()
      requests.forget()
      throw error
    }
  }

  function keep({ now, requests: batches, connections, audit }: WriterRequest & { type: 'keep' }): WriterReply {
    return inTransaction(() => {
      connections.forEach(events.connection)
      audit.forEach(events.audit)
      return { type: 'kept', refused: requests.keep(batches, now) }
    })
  }

  function sweep(now: number): WriterReply {
    sweeping ??= retentionSteps(db, now)
    const { done, value } = sweeping.next()
    if (done) {
      sweeping = undefined
      return { type: 'swept', more: false }
    }
    try {
      inTransaction(value)
      // The last step removes numbers.
      tunnels.forget()
    } catch (error) {
      sweeping = undefined
      throw error
    }
    return { type: 'swept', more: true }
  }

  return (request) => {
    if (request.type === 'keep') return keep(request)
    if (request.type === 'sweep') return sweep(request.now)
    db.close()
    return { type: 'closed' }
  }
}

serveThread(() => openWriter(String(workerData)))
