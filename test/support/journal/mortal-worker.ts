import { workerData } from 'node:worker_threads'
import { existsSync, statSync } from 'node:fs'
import { serveThread } from '../../../journal/serve-thread.ts'

/**
 * Thread for a test. `die` ends it, `fail` and `read` fail, and other messages are echoed. It fails to start while the file
 * `workerData` exists.
 */
serveThread<{ readonly type: string }, { readonly type: string }>(() => {
  if (existsSync(String(workerData))) throw new Error('not now')
  return (question) => {
    if (question.type === 'die') process.exit(1)
    if (question.type === 'fail') throw Object.assign(new Error('full'), { errcode: 13 })
    if (question.type === 'read') statSync('/no/such/file')
    return question
  }
})
