import { expect, inject, vi } from 'vitest'
import { namespaceName } from '../../../crds/names.ts'
import type { Answer, Instance } from '../../support/api/answers.ts'
import { type Deployment, openDeployment } from '../../support/deployment/deployment.ts'
import type { Call } from '../../support/api/answers.ts'
import { expectSuccess, type Tenant } from '../../support/api/tenant.ts'
import { clientsOf, type Kubernetes } from '../setup/kubectl.ts'
import { type Components, componentsOf } from './components.ts'
import { type Engines, openEngines } from './engines.ts'

/** How long what goes on by itself after a fault may take. */
export const PATIENT = { timeout: 60_000, interval: 250 }

/** What a test of faults looks at: the API as an editor in a namespace of its own, kubectl, and the engines' catalogs. */
export interface FaultBench extends AsyncDisposable {
  readonly clients: Kubernetes
  readonly components: Components
  readonly engines: Engines
  readonly deployment: Deployment
  readonly tenant: Tenant
  /** The tenant's namespace in Kubernetes. */
  readonly namespace: string
  /** The one who creates, and whose keys these are. */
  readonly editor: Call
  /** `POST /v1/instances`, with the identifier for its Idempotency-Key. */
  create(identifier: string): Promise<Answer>
  /** Asks for it, by the same key again and again while the API or the claim is not back yet. @returns what is answered at last */
  granted(identifier: string): Promise<Instance>
  /** Fails unless, in a while, there is one whole database for each resource, and nothing else. */
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
