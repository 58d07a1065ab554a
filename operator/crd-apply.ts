import type { Logger } from 'pino'
import { z } from 'zod'
import { customResourceDefinition } from '../crds/schema/definition.ts'
import { MooringError } from '../shared/errors.ts'
import { CUSTOM_KINDS } from '../crds/index.ts'
import type { Kind } from '../crds/kind.ts'
import { annotations } from '../crds/names.ts'
import { isNewer, PROGRAM_VERSION } from '../process/version.ts'
import { type Clock, pause, systemClock } from '../shared/timers.ts'
import type { ApiResponse, KubernetesClient } from '../store/kubernetes/client.ts'

const PATH = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
const ESTABLISHED_MS = 30_000
const RETRY_MS = 100
const CONFLICT = 409

const Live = z.looseObject({
  metadata: z.looseObject({
    name: z.string(),
    resourceVersion: z.string(),
    annotations: z.record(z.string(), z.string()).optional(),
  }),
  spec: z.record(z.string(), z.unknown()),
  status: z.looseObject({ conditions: z.array(z.looseObject({ type: z.string(), status: z.string() })).nullish() }).optional(),
})
type Live = z.output<typeof Live>

export interface CrdApplyDeps {
  readonly client: KubernetesClient
  readonly log: Pick<Logger, 'info'>
  readonly kinds?: readonly Kind[]
  /** Version of Mooring. Default: the version of this program. */
  readonly version?: string
  readonly clock?: Clock
}

/**
 * Applies every CustomResourceDefinition of this version and waits until the API server serves it; helm never updates them after the first
 * installation. The whole spec is replaced, not merged: a rule or field of an older version would otherwise stay as long as its field
 * manager owns it. An unchanged spec writes nothing. A definition of a newer version is kept: during an upgrade an operator of the old
 * version may become leader again, and objects of the new version would not match its definitions.
 * @throws MooringError `crd_refused` when the API server rejects one or does not serve it within 30 s; StoreError `unavailable`
 */
export async function applyCrds(deps: CrdApplyDeps, signal: AbortSignal): Promise<void> {
  const { kinds = CUSTOM_KINDS } = deps
  await Promise.all(kinds.map((kind) => applyCrd(deps, customResourceDefinition(kind), signal)))
}

type Definition = ReturnType<typeof customResourceDefinition>

async function applyCrd(deps: CrdApplyDeps, desired: Definition, signal: AbortSignal): Promise<void> {
  const { log, clock = systemClock } = deps
  const { name } = desired.metadata
  const before = await read(deps.client, name)
  let live = await write(deps, desired, before)
  if (live.metadata.resourceVersion !== before?.metadata.resourceVersion) {
    log.info({ name }, before ? 'CustomResourceDefinition updated' : 'CustomResourceDefinition created')
  }
  const deadline = clock.now() + ESTABLISHED_MS
  while (!isEstablished(live) && !signal.aborted) {
    if (clock.now() > deadline) throw new MooringError('crd_refused', `the API server does not serve ${name}`)
    await pause(clock, RETRY_MS, signal)
    live = (await read(deps.client, name)) ?? live
  }
}

async function read(client: KubernetesClient, name: string): Promise<Live | undefined> {
  const answer = await client.request({ method: 'GET', path: `${PATH}/${name}` })
  return answer.status === 404 ? undefined : parse(answer, name)
}

async function write(deps: CrdApplyDeps, desired: Definition, live: Live | undefined): Promise<Live> {
  const { client, log, version = PROGRAM_VERSION } = deps
  const { name } = desired.metadata
  const marks = { ...live?.metadata.annotations, [annotations.version]: version }
  const other = live?.metadata.annotations?.[annotations.version] ?? ''
  if (live && isNewer(other, version)) {
    log.info({ name, version: other }, 'CustomResourceDefinition of a newer version kept')
    return live
  }
  const query = { fieldManager: 'mooring-operator' }
  // The operators of two versions may write at the same time: the second one reads again and decides anew.
  const answer = live
    ? await client.request({
        method: 'PUT',
        path: `${PATH}/${name}`,
        query,
        // Fields that the API server defaulted stay, so that an unchanged definition writes nothing.
        body: { ...live, metadata: { ...live.metadata, annotations: marks }, spec: { ...live.spec, ...desired.spec } },
        idempotent: true,
      })
    : await client.request({ method: 'POST', path: PATH, query, body: { ...desired, metadata: { name, annotations: marks } } })
  if (answer.status !== CONFLICT) return parse(answer, name)
  return write(deps, desired, await read(client, name))
}

function parse({ status, body }: ApiResponse, name: string): Live {
  const live = Live.safeParse(body)
  if (status < 300 && live.success) return live.data
  const why = z.looseObject({ message: z.string() }).safeParse(body)
  const text = why.success ? why.data.message : `status ${status}`
  throw new MooringError('crd_refused', `the API server rejects the CustomResourceDefinition ${name}: ${text}`)
}

const isEstablished = ({ status }: Live): boolean =>
  (['NamesAccepted', 'Established'] as const).every(
    (type) => status?.conditions?.some((condition) => condition.type === type && condition.status === 'True') === true,
  )
