import { setInterval } from 'node:timers'
import { connectionRecord, requestRecord } from '../../conformance/journal/records.ts'
import { openSpool } from '../../../journal/spool.ts'

/**
 * Program for the crash test. It writes records of the tunnel `argv[4]` to the spool at `argv[2]`, which ships with the login at
 * `argv[3]`, until it is killed. It prints `connect ID.` and `disconnect ID.` for each acknowledged record, and `request ID.` for
 * each request it has passed on.
 */
const [, , directory = '', login = '', tunnel = ''] = process.argv
const journal = await openSpool({ directory, login, log: { warn: () => undefined, info: () => undefined } })
const say = (what: string, { id }: { readonly id: string }) => void process.stdout.write(`${what} ${id}.\n`)

async function sessions(): Promise<never> {
  for (;;) {
    const connect = connectionRecord({ tunnel, edge: 'edge-a' })
    await journal.connection(connect)
    say('connect', connect)
    const disconnect = connectionRecord({ tunnel, edge: 'edge-a', sessionId: connect.sessionId, type: 'disconnect' })
    await journal.connection(disconnect)
    say('disconnect', disconnect)
  }
}
setInterval(() => {
  for (let count = 0; count < 5; count += 1) {
    const record = requestRecord({ tunnel })
    journal.request(record)
    say('request', record)
  }
}, 1)
await Promise.all([sessions(), sessions(), sessions()])
