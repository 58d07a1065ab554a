import { workerData } from 'node:worker_threads'
import { openForReading } from './layout.ts'
import type { ReaderReply, ReaderRequest } from './messages.ts'
import { createEventReader } from './read-events.ts'
import { createRequestReader } from './read-requests.ts'
import { createStatsReader } from './read-stats.ts'
import { type Answer, serveThread } from '../thread/serve-thread.ts'

/**
 * Thread of the connection that reads, so that a long search holds up no writer. It also brings the log back into the file: the fsync of
 * that is what the writer must not wait for. `workerData` is the path.
 */
function openReader(path: string): Answer<ReaderRequest, ReaderReply> {
  const db = openForReading(path)
  const requests = createRequestReader(db)
  const events = createEventReader(db)
  const stats = createStatsReader(db)

  /** The long part beside the writer; then the rest, for which he waits, since only a log that is brought back whole begins anew. */
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
