import { expect, inject, vi } from 'vitest'
import { namespaceName } from '../../../crds/names.ts'
import type { Answer, Instance } from '../../support/api/answers.ts'
import { type Deployment, openDeployment } from '../../support/deployment/deployment.ts'
import type { Call } from '../../support/api/answers.ts'
import { expectSuccess, type Tenant } from '../../support/api/tenant.ts'
import { clientsOf, type Kubernetes } from '../setup/kubectl.ts'
import { type Components, componentsOf } from './components.ts'
import { type Engines, openEngines } from './engines.ts'

/** Maximum time for a recovery after a fault. */
export const PATIENT = { timeout: 60_000, interval: 250 }

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
    granted: (identifier) => vi.waitFor(async () => (await expectSuccess(create(identifier))).body.data.instance, PATIENT),
    async expectOneOfEach() {
      await expect.poll(() => engines.amiss(), PATIENT).toEqual([])
      await expect.poll(() => engines.strayCredentials(namespace), PATIENT).toEqual([])
    },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  }
}
