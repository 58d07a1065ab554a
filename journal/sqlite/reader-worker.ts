import { workerData } from 'node:worker_threads'
import { openForReading } from './layout.ts'
import type { OutboxQuestion, ReaderReply, ReaderRequest } from './messages.ts'
import { createDatabaseReader } from './databases.ts'
import { createDeliveryReader, type DeliveryReader } from './deliveries.ts'
import { createEventReader } from './events.ts'
import { createRequestReader } from './requests.ts'
import { createStatsReader } from './stats.ts'
import { type ThreadHandler, serveThread } from '../serve-thread.ts'

function answerOfOutbox(deliveries: DeliveryReader, question: OutboxQuestion): ReaderReply {
  switch (question.type) {
    case 'events':
      return { type: 'connections', records: deliveries.events(question.limit) }
    case 'deliveries':
      return { type: 'deliveries', deliveries: deliveries.list(question.webhook, question.page) }
    case 'delivery': {
      const found = deliveries.find(question.webhook, question.id)
      return { type: 'deliveries', deliveries: found ? [found] : [] }
    }
    case 'due':
      return { type: 'due', due: deliveries.due(question.query) }
  }
}

/**
 * Runs the thread of the connection that reads, so that a long search does not delay writes. It also runs checkpoints, whose
 * fsync must not delay the writer. `workerData` is the path of the file.
 */
function openReader(path: string): ThreadHandler<ReaderRequest, ReaderReply> {
  const db = openForReading(path)
  const requests = createRequestReader(db)
  const events = createEventReader(db)
  const deliveries = createDeliveryReader(db)
  const stats = createStatsReader(db)
  const databases = createDatabaseReader(db)

  /**
   * Copies most of the log while the writer goes on, then the rest while it waits: only a log that is copied completely starts
   * over.
   */
  function checkpoint(): ReaderReply {
    db.exec('PRAGMA wal_checkpoint(PASSIVE)')
    db.exec('PRAGMA wal_checkpoint(RESTART)')
    return { type: 'done' }
  }

  async function answer(question: Exclude<ReaderRequest, { type: 'outbox' | 'databases' }>): Promise<ReaderReply> {
    switch (question.type) {
      case 'requests':
        return { type: 'requests', records: await requests(question.filter, question.page) }
      case 'connections':
        return { type: 'connections', records: events.connections(question.filter, question.page) }
      case 'audit':
        return { type: 'audit', records: events.audit(question.filter, question.page) }
      case 'audited':
        return { type: 'audited', changes: events.audited(question.changes) }
      case 'openSessions':
        return { type: 'connections', records: events.openSessions() }
      case 'presence':
        return { type: 'presence', presence: events.presence(question.tunnels) }
      case 'stats':
        return { type: 'stats', stats: stats(question.tunnel, question.span) }
      case 'checkpoint':
        return checkpoint()
      case 'close':
        db.close()
        return { type: 'done' }
    }
  }

  return (question) => {
    if (question.type === 'outbox') return answerOfOutbox(deliveries, question.question)
    return question.type === 'databases' ? databases(question.question) : answer(question)
  }
}

serveThread(() => openReader(String(workerData)))
