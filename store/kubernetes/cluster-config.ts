import { readFile } from 'node:fs/promises'
import type { RequestOptions } from 'node:https'
import type { KubeConfig } from '@kubernetes/client-node'
import { MooringError } from '../../shared/errors.ts'

/** Which API server, and as whom: as much of a kubeconfig as the store needs. */
export type ClusterConfig = Pick<KubeConfig, 'getCurrentCluster' | 'applyToHTTPSOptions'>

/** Where Kubernetes puts what a pod needs to reach the API server ("Accessing the Kubernetes API from a Pod"). */
const SERVICE_ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount'

type Environment = Readonly<Record<string, string | undefined>>

/**
 * The kubeconfig that `KUBECONFIG` names, else the service account of the pod that this process runs in.
 * @throws MooringError `invalid_settings`
 */
export async function loadClusterConfig(env: Environment, directory = SERVICE_ACCOUNT): Promise<ClusterConfig> {
  const path = env.KUBECONFIG
  if (path !== undefined && path !== '') return fromFile(path)
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = env
  if (host !== undefined && host !== '' && port !== undefined) return inCluster(host, { port, directory })
  throw new MooringError('invalid_settings', 'this is no pod of a Kubernetes cluster: name a kubeconfig in KUBECONFIG')
}

/** The library costs 85 MB and a second, so no pod loads it: it is for kubeconfigs, with their certificates and credential plugins. */
async function fromFile(path: string): Promise<ClusterConfig> {
  const { KubeConfig } = await import('@kubernetes/client-node')
  const config = new KubeConfig()
  try {
    config.loadFromFile(path)
  } catch (cause) {
    throw new MooringError('invalid_settings', `the kubeconfig ${path} cannot be read`, { cause })
  }
  return config
}

function inCluster(host: string, { port, directory }: { port: string; directory: string }): ClusterConfig {
  const server = `https://${host.includes(':') ? `[${host}]` : host}:${port}`
  return {
    getCurrentCluster: () => ({ name: 'in-cluster', server, skipTLSVerify: false }),
    async applyToHTTPSOptions(options: RequestOptions) {
      const [ca, token] = await Promise.all(['ca.crt', 'token'].map((name) => readFile(`${directory}/${name}`, 'utf8')))
      options.ca = ca
      options.headers = { Authorization: `Bearer ${token?.trim() ?? ''}` }
    },
  }
}
