import { parentPort, workerData } from 'node:worker_threads'
import { MooringError } from '../../shared/errors.ts'
import { type Failure, type Reply, type Request, openSqlite, type SqliteFile } from './sqlite.ts'

// Thread that owns the file. It gets one request at a time and sends exactly one reply to each; `workerData` is the path.

const SQLITE_BUSY = 5

function failure(error: unknown): Failure {
  const busy = error instanceof Error && 'errcode' in error && error.errcode === SQLITE_BUSY
  const code = busy ? 'locked' : error instanceof MooringError ? error.code : 'unavailable'
  return { type: 'failed', code, message: error instanceof Error ? error.message : String(error) }
}

function attempt(act: () => Reply): Reply {
  try {
    return act()
  } catch (error) {
    return failure(error)
  }
}

function answer(file: SqliteFile, request: Request): Reply {
  if (request.type === 'commit') file.commit(request.batch)
  else file.close()
  return { type: request.type === 'commit' ? 'committed' : 'closed' }
}

let file: SqliteFile | undefined
const opened = attempt(() => {
  file = openSqlite(String(workerData))
  return { type: 'opened', contents: file.read() }
})
parentPort?.postMessage(opened)

if (file && opened.type === 'opened') {
  const open = file
  parentPort?.on('message', (request: Request) => {
    parentPort?.postMessage(attempt(() => answer(open, request)))
    if (request.type === 'close') parentPort?.close()
    else open.checkpoint()
  })
}
