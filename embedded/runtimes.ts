import type { DockerRuntime } from '../operator/server/docker/docker-runtime.ts'
import type { DatabaseServer } from '../crds/database-server.ts'
import type { ServerRuntime } from '../operator/server/runtime.ts'

/**
 * Joins the runtimes of embedded mode. A server stays with the runtime that created its data; a new one runs in a container when an image
 * serves its motor.
 */
export function joinRuntimes(processes: ServerRuntime, docker: DockerRuntime): ServerRuntime {
  const runtimeOf = async (server: DatabaseServer): Promise<ServerRuntime> => ((await docker.owns(server)) ? docker : processes)
  return {
    motors: async () => new Map([...(await processes.motors()), ...(await docker.motors())]),
    ensure: async (server, credentials) => (await runtimeOf(server)).ensure(server, credentials),
    remove: async (server) => (await runtimeOf(server)).remove(server),
    restart: async (server) => (await runtimeOf(server)).restart(server),
    onChange(handler) {
      processes.onChange(handler)
      docker.onChange(handler)
    },
    async close() {
      await Promise.all([processes.close(), docker.close()])
    },
  }
}
