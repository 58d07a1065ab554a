import type { SecureClientSessionOptions } from 'node:http2'
import type { RequestOptions } from 'node:https'
import { readFile } from 'node:fs/promises'
import type { KubeConfig } from '@kubernetes/client-node'
import { type Clock, systemClock } from '../../shared/timers.ts'
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

/** Credentials of this process, and the certificates that verify the API server. */
export interface Credentials {
  readonly tls: Pick<SecureClientSessionOptions, 'ca' | 'cert' | 'key' | 'servername' | 'rejectUnauthorized'>
  /** Headers for authorization and impersonation; names in lower case. */
  readonly headers: Readonly<Record<string, string>>
}

export interface CredentialSource {
  /** Returns the credentials. @throws the error of reading a file or running a credential plugin */
  current(): Promise<Credentials>
  /** Drops the credentials after the API server has rejected them; the next `current` reads them again. */
  forget(): void
}

/** Time for which credentials are cached. It is short compared with tokens: kubelet renews one when 20 % of its lifetime is left. */
const FRESH_MS = 10_000

/** Creates the source of credentials of the config's current context: certificates, tokens (also from rotated files), credential plugins. */
export function createCredentialSource(config: ClusterConfig, clock: Clock = systemClock): CredentialSource {
  let known: { readonly credentials: Promise<Credentials>; readonly since: number } | undefined

  return {
    current() {
      if (!known || clock.now() - known.since > FRESH_MS) {
        const credentials = read(config)
        known = { credentials, since: clock.now() }
        // A failure is not cached: the next call tries again.
        credentials.catch(() => {
          if (known?.credentials === credentials) known = undefined
        })
      }
      return known.credentials
    },
    forget() {
      known = undefined
    },
  }
}

async function read(config: ClusterConfig): Promise<Credentials> {
  const options: RequestOptions = { headers: {} }
  await config.applyToHTTPSOptions(options)
  const headers: Record<string, string> = {}
  for (const [name, value] of Object.entries(options.headers ?? {})) {
    // A token file may end with a line break, which is invalid in a header.
    if (typeof value === 'string') headers[name.toLowerCase()] = value.trim()
  }
  if (options.auth) headers.authorization = `Basic ${Buffer.from(options.auth).toString('base64')}`
  const { ca, cert, key, servername, rejectUnauthorized } = options
  const given = Object.entries({ ca, cert, key, servername, rejectUnauthorized }).filter(([, value]) => value !== undefined)
  return { tls: Object.fromEntries(given), headers }
}
