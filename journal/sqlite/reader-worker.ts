import { workerData } from 'node:worker_threads'
import { openForReading } from './layout.ts'
import type { ReaderReply, ReaderRequest } from './messages.ts'
import { createEventReader } from './events.ts'
import { createRequestReader } from './requests.ts'
import { createStatsReader } from './stats.ts'
import { type Answer, serveThread } from '../serve-thread.ts'

/**
 * Runs the thread of the connection that reads, so that a long search does not delay writes. It also runs checkpoints, whose
 * fsync must not delay the writer. `workerData` is the path of the file.
 */
function openReader(path: string): Answer<ReaderRequest, ReaderReply> {
  const db = openForReading(path)
  const requests = createRequestReader(db)
  const events = createEventReader(db)
  const stats = createStatsReader(db)

  /**
   * Copies most of the log while the writer goes on, then the rest while it waits: only a log that is copied completely starts
   * over.
   */
  function checkpoint(): ReaderReply {
    db.exec('PRAGMA wal_checkpoint(PASSIVE)')
    db.exec('PRAGMA wal_checkpoint(RESTART)')
    return { type: 'done' }
  }

  return async (question) => {
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
}

serveThread(() => openReader(String(workerData)))
