import type { ContainerStatus, Pod } from './kinds.ts'

/**
 * State of a pod's program. `serving`: its port is open; logins may still fail. `message`: what it waits for, or the reason of its failure.
 */
export type PodState =
  | { readonly phase: 'serving' }
  | { readonly phase: 'starting'; readonly message: string }
  | { readonly phase: 'failed'; readonly reason: 'MotorUnavailable' | 'Crashed'; readonly message: string }

/** Names of the containers of the backup agent and of the exporter beside a database server. Their failures are not those of the server. */
export const BACKUP_CONTAINER = 'backup'
export const EXPORTER_CONTAINER = 'exporter'
const BESIDE: ReadonlySet<string> = new Set([BACKUP_CONTAINER, EXPORTER_CONTAINER])

/** Beginning of the line in which `initialise` says why the image cannot serve the data. Only our own script writes to its log before. */
export const REFUSED = 'REFUSED: '

/** Waiting reasons of a missing image (kubelet; the last is Kubernetes 1.31's for a signature). */
const NO_IMAGE = new Set([
  'ErrImagePull',
  'ImagePullBackOff',
  'InvalidImageName',
  'ErrImageNeverPull',
  'SignatureValidationFailed',
])
/** Waiting reasons of a container that cannot start: the image lacks the program, or the node rejects the container's settings. */
const NO_START = new Set(['CrashLoopBackOff', 'RunContainerError', 'CreateContainerError', 'StartError'])
/** Maximum length of a quotation: it fits a condition's message after a sentence. */
const MOST_CHARS = 800

const NOT_PULLED = ' cannot be pulled'

/** Returns the message of a failed pod without the kubelet's words about a pull, which may name the registry and the account of the cluster. */
export function withoutPullError(message: string): string {
  const end = message.indexOf(`${NOT_PULLED}: `)
  return end < 0 ? message : message.slice(0, end + NOT_PULLED.length)
}

const starting = (message: string): PodState => ({ phase: 'starting', message })

/** Derives the state from a pod. Pure. `isShowable`: whether a line of the engine's log may be shown. */
export function podState(pod: Pod | undefined, isShowable: (line: string) => boolean): PodState {
  if (!pod) return starting('its pod does not exist yet')
  if (pod.metadata.deletionTimestamp !== undefined) return starting('its pod is being replaced')
  const { initial, main } = containersOf(pod)
  const refusal = initial.map(refusalIn).find((text) => text !== undefined)
  if (refusal !== undefined) return { phase: 'failed', reason: 'MotorUnavailable', message: refusal }
  for (const container of [...initial, ...main]) {
    const failure = failureOf(container, isShowable)
    if (failure) return failure
  }
  return main[0]?.ready ? { phase: 'serving' } : starting(unscheduled(pod) ?? 'the server is starting')
}

/** Returns the statuses of the containers with the pod's own program. The kubelet sorts all of them by name. */
export const mainContainersOf = ({ status }: Pick<Pod, 'status'>): readonly ContainerStatus[] =>
  (status?.containerStatuses ?? []).filter(({ name }) => !BESIDE.has(name))

function containersOf(pod: Pod) {
  return { initial: pod.status?.initContainerStatuses ?? [], main: mainContainersOf(pod) }
}

function failureOf(container: ContainerStatus, isShowable: (line: string) => boolean): PodState | undefined {
  const { waiting = {}, terminated } = container.state
  const { reason = '', message = reason } = waiting
  if (NO_IMAGE.has(reason)) {
    const text = `the image ${container.image ?? ''}${NOT_PULLED}: ${clipped(message)}`
    return { phase: 'failed', reason: 'MotorUnavailable', message: text }
  }
  if (!NO_START.has(reason) && !terminated?.exitCode) return undefined
  const said = lastOutput(container, isShowable) ?? `cannot be started: ${clipped(message)}`
  return { phase: 'failed', reason: 'Crashed', message: `${container.name} ${said}` }
}

/** Reason why `initialise` refused the data, if it did. */
function refusalIn({ state, lastState }: ContainerStatus): string | undefined {
  const lines = (state.terminated ?? lastState.terminated)?.message?.split('\n') ?? []
  return lines.find((line) => line.startsWith(REFUSED))?.slice(REFUSED.length)
}

/** Last log lines of a failed container, which the kubelet puts into the pod's status. */
function lastOutput({ state, lastState }: ContainerStatus, isShowable: (line: string) => boolean): string | undefined {
  const ended = state.terminated ?? lastState.terminated
  if (!ended) return undefined
  const { exitCode, message = '', reason = 'Error' } = ended
  const lines = message.split('\n').filter((line) => line !== '' && isShowable(line))
  return lines.length > 0
    ? `ended: ${lines.join('\n').slice(-MOST_CHARS)}`
    : `ended without output (${reason}, exit code ${exitCode})`
}

function unscheduled({ status }: Pod): string | undefined {
  const scheduled = status?.conditions.find(({ type }) => type === 'PodScheduled')
  if (scheduled?.status !== 'False') return undefined
  const { message = scheduled.reason ?? '' } = scheduled
  return `no node accepts it: ${clipped(message)}`
}

const clipped = (text: string): string => text.slice(0, MOST_CHARS)
