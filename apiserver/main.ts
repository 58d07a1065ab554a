import { runProgram } from '../process/run.ts'
import { createKubernetesStore } from '../store/kubernetes.ts'
import { loadClusterConfig } from '../store/kubernetes/credentials.ts'
import { createSubjectAccess } from '../store/kubernetes/subject-access.ts'
import { parseSettings } from './settings.ts'
import { startApiServer } from './start.ts'

/** Maximum shutdown time: less than the pod's termination grace period (charts/mooring). Requests in flight have 35 s of it. */
const STOP_MS = 43_000

await runProgram({
  parse: parseSettings,
  stopMs: STOP_MS,
  async start(settings, log) {
    const store = createKubernetesStore({ config: await loadClusterConfig(process.env), fieldManager: 'mooring-apiserver' })
    const running = await startApiServer({
      settings,
      log,
      store,
      access: (caches) => createSubjectAccess({ client: store.client, ...caches }),
    })
    return {
      async stop() {
        await running.stop()
        await store.close()
      },
    }
  },
})
