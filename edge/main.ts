import { runProgram } from '../process/run.ts'
import { createKubernetesStore } from '../store/kubernetes.ts'
import { loadClusterConfig } from '../store/kubernetes/credentials.ts'
import { parseSettings } from './settings.ts'
import { startEdge } from './start.ts'

/** Maximum time to stop, a little less than the grace period of the pod (operator/endpoint/kubernetes). */
const STOP_MS = 55_000

await runProgram({
  parse: parseSettings,
  stopMs: STOP_MS,
  async start(settings, log, life) {
    const store = createKubernetesStore({ config: await loadClusterConfig(process.env), fieldManager: 'mooring-edge' })
    const running = await startEdge({ settings, log, store, stopping: life.stopping })
    return {
      async stop() {
        await running.stop()
        await store.close()
      },
    }
  },
})
