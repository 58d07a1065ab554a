import { connectionRecord, auditRecord, requestRecord } from '../../conformance/journal/records.ts'
import { openSqliteJournal } from '../../../journal/sqlite.ts'

/**
 * Program for the crash test. It writes to the journal at `argv[2]` until it is killed. It prints `request ID.` for each request
 * that is kept, and `connect ID.`, `disconnect ID.` and `audit ID.` for each acknowledged record.
 */
const [, , path = ''] = process.argv
const tunnel = 'crash'
const log = { warn: () => undefined, info: () => undefined }
const journal = await openSqliteJournal({ path, log })
const say = (what: string, { id }: { readonly id: string }) => void process.stdout.write(`${what} ${id}.\n`)

journal.follow(tunnel, (record) => say('request', record))
async function sessions(): Promise<never> {
  for (;;) {
    const connect = connectionRecord({ tunnel })
    await journal.connection(connect)
    say('connect', connect)
    const audit = auditRecord({ namespace: 'crash' })
    await journal.audit(audit)
    say('audit', audit)
    const disconnect = connectionRecord({ tunnel, sessionId: connect.sessionId, type: 'disconnect' })
    await journal.connection(disconnect)
    say('disconnect', disconnect)
  }
}
setInterval(() => {
  for (let count = 0; count < 5; count += 1) journal.request(requestRecord({ tunnel }))
}, 1)
await Promise.all([sessions(), sessions(), sessions()])
