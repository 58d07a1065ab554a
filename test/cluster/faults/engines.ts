import { isDeepStrictEqual } from 'node:util'
import { Secret } from '../../../crds/core.ts'
import { DatabaseServer } from '../../../crds/database-server.ts'
import { SharedInstance } from '../../../crds/shared-instance.ts'
import type { TenantState } from '../../../operator/engines/engine.ts'
import { postgresqlAdmin } from '../../../operator/engines/postgresql/postgresql.ts'
import { createAdminCertificate } from '../../../operator/certificates/admin-certificate.ts'
import type { KeyPair } from '../../../operator/certificates/local-ca.ts'
import { CA_SECRET } from '../../../operator/installation/ca.ts'
import { ADMIN_USER, adminCredentials } from '../../../operator/server/credentials.ts'
import { secretName } from '../../../operator/shared-instance/credentials.ts'
import { labels, SHARED_NAMESPACE, SYSTEM_NAMESPACE } from '../../../crds/names.ts'
import { decodeSecret } from '../../../operator/secret-data.ts'
import { isReady } from '../../../store/conditions.ts'
import { createKubernetesStore, type KubernetesStore } from '../../../store/kubernetes.ts'
import { loadClusterConfig } from '../../../store/kubernetes/cluster-config.ts'
import { WHOLE } from '../../support/postgresql/tenants.ts'

/** Comparison of the tenants in the engines of a cluster with the cluster's resources. */
export interface Engines extends AsyncDisposable {
  readonly store: KubernetesStore
  /** Returns the names that do not have exactly one complete tenant in the servers' catalogs and one resource. */
  amiss(): Promise<readonly string[]>
  /** Returns the names of credentials without an instance, and of instances without credentials, in a tenant's namespace. */
  strayCredentials(namespace: string): Promise<readonly string[]>
}

/** Opens the comparison, which reads as the administrator of each server. */
export async function openEngines(kubeconfig: string): Promise<Engines> {
  const store = createKubernetesStore({ config: await loadClusterConfig({ KUBECONFIG: kubeconfig }) })
  const authority = await store.get(Secret, { namespace: SYSTEM_NAMESPACE, name: 'mooring-apiserver' })
  const ca = decodeSecret(authority?.data ?? {}, 'ca.crt')
  const adminCertificate = createAdminCertificate({ ca: () => readCa(store), user: ADMIN_USER, now: () => new Date() })

  async function tenantsOn(server: DatabaseServer): Promise<readonly (readonly [string, TenantState])[]> {
    const { host = '', port = 0 } = server.status ?? {}
    await using admin = postgresqlAdmin({
      host,
      port,
      ca,
      client: await adminCertificate(),
      ...(await adminCredentials(store, server)),
    })
    return [...(await admin.catalog()).tenants]
  }

  return {
    store,
    async amiss() {
      const servers = await store.list(DatabaseServer, { namespace: SHARED_NAMESPACE })
      const shared = servers.items.filter(({ spec }) => spec.tenancy === 'shared')
      const found = (await Promise.all(shared.filter(isReady).map(tenantsOn))).flat()
      const instances = await store.list(SharedInstance)
      const wanted = instances.items.map(({ metadata, status }) => status?.name ?? metadata.name)
      const whole = found.filter(([, state]) => isDeepStrictEqual(state, WHOLE)).map(([name]) => name)
      const names = new Set([...found.map(([name]) => name), ...wanted])
      return [...names].filter((name) => count(whole, name) !== 1 || count(wanted, name) !== 1)
    },
    async strayCredentials(namespace) {
      const secrets = await store.list(Secret, { namespace, labels: { [labels.managedBy]: 'mooring' } })
      const instances = await store.list(SharedInstance, { namespace })
      const found = new Set(secrets.items.map(({ metadata }) => metadata.name))
      return [...found.symmetricDifference(new Set(instances.items.map(secretName)))]
    },
    [Symbol.asyncDispose]: () => store.close(),
  }
}

/** CA of the installation, which signs the administrator's certificate: a server rejects the password alone. */
async function readCa(store: KubernetesStore): Promise<KeyPair> {
  const secret = await store.get(Secret, { namespace: SYSTEM_NAMESPACE, name: CA_SECRET })
  const { certificate, key } = Object.fromEntries(
    ['certificate', 'key'].map((name) => [name, decodeSecret(secret?.data ?? {}, name) ?? '']),
  )
  return { certificate: certificate ?? '', key: key ?? '' }
}

const count = (names: readonly string[], name: string): number => names.filter((other) => other === name).length
