import { isDeepStrictEqual } from 'node:util'
import { expect, inject, vi } from 'vitest'
import { namespaceName, labels, SHARED_NAMESPACE, SYSTEM_NAMESPACE } from '../../../crds/names.ts'
import type { Answer, Instance, Call } from '../../support/api/answers.ts'
import { type Deployment, openDeployment } from '../../support/deployment/deployment.ts'
import { expectSuccess, type Tenant } from '../../support/api/tenant.ts'
import { clientsOf, type Kubernetes } from '../setup/commands.ts'
import { type Components, componentsOf } from './components.ts'
import { Secret } from '../../../crds/core.ts'
import { partsOf } from '../../../crds/motor.ts'
import { DatabaseServer } from '../../../crds/database-server.ts'
import { SharedInstance } from '../../../crds/shared-instance.ts'
import type { TenantState } from '../../../operator/engines/engine.ts'
import { ENGINES } from '../../../operator/engines/index.ts'
import { createAdminCertificate } from '../../../operator/certificates/renewing-certificate.ts'
import type { KeyPair } from '../../../operator/certificates/local-ca.ts'
import { CA_SECRET } from '../../../operator/installation/ca.ts'
import { ADMIN_USER, adminCredentials } from '../../../operator/server/credentials.ts'
import { secretName } from '../../../operator/shared-instance/credentials.ts'
import { decodeSecret } from '../../../operator/secret-data.ts'
import { isReady } from '../../../store/conditions.ts'
import { createKubernetesStore, type KubernetesStore } from '../../../store/kubernetes.ts'
import { loadClusterConfig } from '../../../store/kubernetes/credentials.ts'
import { WHOLE } from '../../support/deployment/data-directory.ts'
import { LATER } from '../../support/patience.ts'

/** Access of a fault test to the API, as an editor of a new namespace, to kubectl, and to the engines' catalogs. */
export interface FaultBench extends AsyncDisposable {
  readonly clients: Kubernetes
  readonly components: Components
  readonly engines: Engines
  readonly deployment: Deployment
  readonly tenant: Tenant
  /** Kubernetes namespace of the tenant. */
  readonly namespace: string
  /** Calls the API as the editor who creates instances and owns their Idempotency-Keys. */
  readonly editor: Call
  /** Sends `POST /v1/instances` with the identifier as Idempotency-Key. */
  create(identifier: string): Promise<Answer>
  /** Repeats `create` with the same key until it succeeds. @returns the created instance */
  granted(identifier: string): Promise<Instance>
  /** Fails unless, within the recovery time, each resource has one complete database and there is no other database. */
  expectOneOfEach(): Promise<void>
}

export async function openFaultBench(): Promise<FaultBench> {
  await using opened = new AsyncDisposableStack()
  const clients = clientsOf(inject('cluster').kubeconfig)
  const engines = opened.use(await openEngines(clients.kubeconfig))
  const deployment = opened.use(openDeployment())
  const tenant = await deployment.namespace()
  const namespace = namespaceName(tenant.organization, tenant.namespace)

  const editor = tenant.as('editor')
  const create: FaultBench['create'] = (identifier) =>
    editor('POST', '/v1/instances', {
      body: deployment.instanceBody({ identifier }),
      headers: { 'Idempotency-Key': identifier },
    })

  const all = opened.move()
  return {
    ...{ clients, engines, deployment, tenant, namespace, editor, create },
    components: componentsOf(clients),
    granted: (identifier) => vi.waitFor(async () => (await expectSuccess(create(identifier))).body.data.instance, LATER),
    async expectOneOfEach() {
      await expect.poll(() => engines.amiss(), LATER).toEqual([])
      await expect.poll(() => engines.strayCredentials(namespace), LATER).toEqual([])
    },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  }
}

/** Comparison of the tenants in the engines of a cluster with the cluster's resources. */
export interface Engines extends AsyncDisposable {
  readonly store: KubernetesStore
  /** Returns the names that do not have exactly one complete tenant in the servers' catalogs and one resource. */
  amiss(): Promise<readonly string[]>
  /** Returns the names of credentials without an instance, and of instances without credentials, in a tenant's namespace. */
  strayCredentials(namespace: string): Promise<readonly string[]>
}

/** Opens the comparison, which reads as the administrator of each server. */
async function openEngines(kubeconfig: string): Promise<Engines> {
  const store = createKubernetesStore({ config: await loadClusterConfig({ KUBECONFIG: kubeconfig }) })
  const authority = await store.get(Secret, { namespace: SYSTEM_NAMESPACE, name: 'mooring-apiserver' })
  const ca = decodeSecret(authority?.data ?? {}, 'ca.crt')
  const adminCertificate = createAdminCertificate({ ca: () => readCa(store), user: ADMIN_USER, now: () => new Date() })

  async function tenantsOn(server: DatabaseServer): Promise<readonly (readonly [string, TenantState])[]> {
    const { host = '', port = 0, tls } = server.status ?? {}
    const proof = tls === 'none' ? {} : { ca, client: await adminCertificate() }
    const engine = ENGINES.get(partsOf(server.spec.motor).family)
    if (!engine) throw new Error(`no engine for ${server.spec.motor}`)
    await using admin = engine.admin({ host, port, ...proof, ...(await adminCredentials(store, server)) })
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
