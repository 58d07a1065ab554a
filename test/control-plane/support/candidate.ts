import { hrtime } from 'node:process'
import { setTimeout } from 'node:timers/promises'
import { SharedInstance } from '../../../crds/shared-instance.ts'
import { createFencedStore, createLeaderElection } from '../../../operator/runtime/leader.ts'
import { createKubernetesStore } from '../../../store/kubernetes.ts'
import { loadClusterConfig } from '../../../store/kubernetes/credentials.ts'

/*
 * Process that takes part in an election and, while it is leader, writes to one object repeatedly. Prints `leads`, `acts <ns>` for
 * each accepted write (the machine's monotonic time before sending), and `over`.
 */
const [identity = '', namespace = '', name = ''] = process.argv.slice(2)
const stopping = new AbortController()
process.once('SIGTERM', () => {
  stopping.abort()
})
const say = (line: string): void => {
  process.stdout.write(`${line}\n`)
}

const fieldManager = 'candidate'
const store = createKubernetesStore({ config: await loadClusterConfig(process.env), fieldManager })
const log = { info: () => undefined, warn: () => undefined }
const election = createLeaderElection({ store, lease: { namespace, name }, identity, log })
// The fence that operator/start.ts puts before every write of the leader.
const fenced = createFencedStore(store.client, { election, fieldManager })

async function lead(signal: AbortSignal): Promise<void> {
  say('leads')
  for (let port = 1; !signal.aborted; port = (port % 60_000) + 1) {
    const sent = hrtime.bigint()
    try {
      await fenced.patchStatus(SharedInstance, { namespace, name }, { host: identity, port })
      say(`acts ${sent}`)
    } catch {
      say('was refused')
    }
    await setTimeout(50)
  }
}

try {
  await election.run(lead, stopping.signal)
  say('over')
  await store.close()
} catch {
  process.exit(1)
}
