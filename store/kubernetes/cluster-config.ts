import { readFile } from 'node:fs/promises'
import type { RequestOptions } from 'node:https'
import type { KubeConfig } from '@kubernetes/client-node'
import { MooringError } from '../../shared/errors.ts'

/** API server and credentials: the part of a kubeconfig that the store uses. */
export type ClusterConfig = Pick<KubeConfig, 'getCurrentCluster' | 'applyToHTTPSOptions'>

/** Directory of a pod's credentials for the API server (Kubernetes, "Accessing the Kubernetes API from a Pod"). */
const SERVICE_ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount'

type Environment = Readonly<Record<string, string | undefined>>

/**
 * Loads the kubeconfig that `KUBECONFIG` names, otherwise the service account of this pod.
 * @throws MooringError `invalid_settings`
 */
export async function loadClusterConfig(env: Environment, directory = SERVICE_ACCOUNT): Promise<ClusterConfig> {
  const path = env.KUBECONFIG
  if (path !== undefined && path !== '') return fromFile(path)
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = env
  if (host !== undefined && host !== '' && port !== undefined) return inCluster(host, { port, directory })
  throw new MooringError(
    'invalid_settings',
    'this process is not in a pod of a Kubernetes cluster: set KUBECONFIG to the path of a kubeconfig',
  )
}

/** Loads a kubeconfig, with its certificates and credential plugins. Pods do not load the library, which costs 85 MB and a second. */
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
