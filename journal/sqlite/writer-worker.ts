import { workerData } from 'node:worker_threads'
import { createDatabaseKeeper } from './databases.ts'
import { createDeliveryKeeper } from './deliveries.ts'
import { createEventKeeper } from './events.ts'
import { createRequestKeeper } from './requests.ts'
import { openForWriting } from './layout.ts'
import type { WriterReply, WriterRequest } from './messages.ts'
import { retentionSteps } from './retention.ts'
import { type ThreadHandler, serveThread } from '../serve-thread.ts'
import { createTunnelNumbers } from './ids.ts'

/** Runs the thread of the one connection that writes. `workerData` is the path of the file. */
function openWriter(path: string): ThreadHandler<WriterRequest, WriterReply> {
  const db = openForWriting(path)
  const tunnels = createTunnelNumbers(db)
  const requests = createRequestKeeper(db, tunnels)
  const deliveries = createDeliveryKeeper(db)
  const events = createEventKeeper(db, tunnels, deliveries.event)
  const databases = createDatabaseKeeper(db)
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

  function done(act: () => void): WriterReply {
    inTransaction(act)
    return { type: 'done' }
  }

  return (request) => {
    switch (request.type) {
      case 'keep':
        return keep(request)
      case 'sweep':
        return sweep(request.now)
      case 'dispatch':
        return done(() => deliveries.dispatch(request.events, request.deliveries))
      case 'addDelivery':
        return done(() => deliveries.add(request.delivery))
      case 'finish':
        return { type: 'finished', streak: inTransaction(() => deliveries.finish(request.attempt)) }
      case 'abandon':
        return done(() => deliveries.abandon(request.webhook, request.error, request.manual))
      case 'forgive':
        return done(() => deliveries.forgive(request.webhook))
      case 'keepDatabases':
        return done(() => databases.keep(request))
      case 'close':
        db.close()
        return { type: 'closed' }
    }
  }
}

serveThread(() => openWriter(String(workerData)))
