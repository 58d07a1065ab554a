import { Secret } from '../../crds/core.ts'
import { annotations, labels, SYSTEM_NAMESPACE } from '../../crds/names.ts'
import { HeadersUsableReason, Tunnel } from '../../crds/tunnel.ts'
import type { TunnelEndpoint } from '../../crds/tunnel-endpoint.ts'
import { headerValuesSecret } from '../../shared/edge-objects.ts'
import { isFields } from '../../crds/formats/fields.ts'
import { MooringError } from '../../shared/errors.ts'
import { COPY_ENTRY, copyText, headerReferences, refText, referringItems } from '../../shared/header-values.ts'
import type { Cache } from '../../store/cache.ts'
import type { Decision } from '../../store/conditions.ts'
import { addHeaderValues, drawKey, headerSecretName, type HeaderProblem, readHeaderValues } from '../../store/header-secrets.ts'
import { ignoringGone, keyOf, type Store } from '../../store/port.ts'
import type { StatusFields } from '../reporter.ts'
import { encodeSecret } from '../secret-data.ts'

export interface HeaderKeeperDeps {
  readonly store: Store
  /** Tunnels, with the index `headers` of indexes.ts. */
  readonly tunnels: Pick<Cache<typeof Tunnel>, 'countByIndex'>
  readonly now: () => Date
}

/** State of the header values of a tunnel that come from Secrets. */
export interface KeptHeaders {
  readonly fields: Pick<StatusFields<typeof Tunnel>, 'headerValues'>
  /** Condition about missing values: null when there is none, undefined when it stays as reported. */
  readonly problem: Decision | null | undefined
  /** Time in milliseconds until the Secrets are read again; undefined without references. */
  readonly againMs: number | undefined
}

const NONE: KeptHeaders = { fields: {}, problem: null, againMs: undefined }

/** Interval of reading the Secrets of a tunnel, which are not watched. */
const POLL_MS = 10_000
/** Addition to it for each tunnel with references: at most ten are read in a second. */
const POLL_MS_A_TUNNEL = 100
/** Interval at first after the creation of a tunnel with missing values: `kubectl apply` may create the Secret after it. */
const SOON_MS = 100

/** Copies header values from Secrets in the tunnel's namespace to a Secret that the edges of its endpoint may read. */
export interface HeaderKeeper {
  /** Updates the copy of a tunnel with a hostname. Reads the Secrets after a change of the spec, and at an interval. @throws StoreError */
  keep(tunnel: Tunnel, endpoint: TunnelEndpoint | undefined): Promise<KeptHeaders>
}

export function createHeaderKeeper({ store, tunnels, now }: HeaderKeeperDeps): HeaderKeeper {
  /** Time of the next read by uid of the tunnel. A tunnel that is settled when the operator starts is read within an interval. */
  const dueAt = new Map<string, number>()

  /** Forgets tunnels that are deleted: those that were not read when they were due. */
  function forgetDeleted(at: number): void {
    if (dueAt.size <= 2 * tunnels.countByIndex('headers', 'yes') + 100) return
    for (const [uid, due] of dueAt) if (due + intervalMs() < at) dueAt.delete(uid)
  }

  const intervalMs = (): number => POLL_MS + tunnels.countByIndex('headers', 'yes') * POLL_MS_A_TUNNEL

  /** Time until the next read; undefined when it is due. */
  function restMs({ metadata: { uid, generation }, status }: Tunnel, at: number): number | undefined {
    if (status?.headerValues?.observedGeneration !== generation) return undefined
    const due = dueAt.get(uid) ?? at + Math.random() * intervalMs()
    dueAt.set(uid, due)
    return due > at ? due - at : undefined
  }

  async function read(tunnel: Tunnel, endpoint: TunnelEndpoint, hostname: string): Promise<KeptHeaders> {
    const at = now().getTime()
    const { values, problems } = await readHeaderValues(store, tunnel)
    const { metadata } = await copy({ hostname, endpoint: endpoint.metadata.name, text: copyText(values) })
    const ageMs = at - Date.parse(tunnel.metadata.annotations?.[annotations.createdAt] ?? tunnel.metadata.creationTimestamp)
    const againMs = problems.length > 0 ? Math.min(intervalMs(), Math.max(SOON_MS, ageMs)) : intervalMs()
    forgetDeleted(at)
    dueAt.set(tunnel.metadata.uid, at + againMs)
    return {
      fields: { headerValues: { observedGeneration: tunnel.metadata.generation, version: metadata.resourceVersion } },
      problem: problemOf(tunnel, problems) ?? null,
      againMs,
    }
  }

  async function copy({ hostname, endpoint, text }: Copy): Promise<Secret> {
    const key = copyKey(hostname)
    const data = encodeSecret({ [COPY_ENTRY]: text })
    const labelled = { [labels.endpoint]: endpoint }
    const found = await store.get(Secret, key)
    if (!found) return store.create(Secret, { metadata: { ...key, labels: labelled }, data })
    if (found.data[COPY_ENTRY] === data[COPY_ENTRY] && found.metadata.labels?.[labels.endpoint] === endpoint) return found
    return store.mergePatch(Secret, key, { data, metadata: { labels: labelled } }, { uid: found.metadata.uid })
  }

  return {
    async keep(tunnel, endpoint) {
      const { hostname, headerValues } = tunnel.status ?? {}
      if (hostname === undefined || !endpoint) return NONE
      if (!hasReferences(tunnel)) {
        dueAt.delete(tunnel.metadata.uid)
        if (headerValues === undefined) return NONE
        await deleteCopy(store, hostname)
        return { ...NONE, fields: { headerValues: null } }
      }
      const rest = restMs(tunnel, now().getTime())
      if (rest !== undefined) return { fields: {}, problem: undefined, againMs: rest }
      return read(tunnel, endpoint, hostname)
    },
  }
}

interface Copy {
  readonly hostname: string
  readonly endpoint: string
  readonly text: string
}

const copyKey = (hostname: string) => ({ namespace: SYSTEM_NAMESPACE, name: headerValuesSecret(hostname) })

/** Whether header values of a tunnel come from Secrets. */
export const hasReferences = ({ spec }: Pick<Tunnel, 'spec'>): boolean => headerReferences(spec.config).length > 0

/** Deletes the copy of the header values of a tunnel. @throws StoreError */
export async function deleteCopy(store: Pick<Store, 'delete'>, hostname: string): Promise<void> {
  await ignoringGone(store.delete(Secret, copyKey(hostname)))
}

const WHY: Readonly<Record<HeaderProblem['reason'], string>> = {
  [HeadersUsableReason.SecretMissing]: 'there is no such Secret',
  [HeadersUsableReason.KeyMissing]: 'the Secret has no such key',
  [HeadersUsableReason.InvalidValue]:
    'the value must be at most 1,024 printable characters on one line, without blanks at its ends',
  [HeadersUsableReason.SecretForbidden]: 'Mooring reads Secrets in the namespaces of tenants only',
}

/** Condition about header values that cannot be used; undefined when all can. Pure. */
export function problemOf({ spec }: Pick<Tunnel, 'spec'>, problems: readonly HeaderProblem[]): Decision | undefined {
  const [first] = problems
  if (!first) return undefined
  const broken = new Set(problems.map(({ ref }) => refText(ref)))
  const names = spec.config.liveHeaderModifications.flatMap(({ name, valueFrom }) =>
    valueFrom && broken.has(refText(valueFrom.secretKeyRef)) ? [name] : [],
  )
  const { ref, reason } = first
  const message = `${WHY[reason]}: Secret ${ref.name}, key ${ref.key}; removed until then: ${[...new Set(names)].join(', ')}`
  return { status: 'False', reason, message }
}

/** Whether the REST API of an earlier version has put header values into the spec, where all who read the tunnel can read them. */
export function hasLiteralsOfApi({ metadata, spec }: Pick<Tunnel, 'metadata' | 'spec'>): boolean {
  const isOfApi = metadata.annotations?.[annotations.createdBy] !== undefined
  return isOfApi && spec.config.liveHeaderModifications.some(({ value = '' }) => value !== '')
}

/**
 * Moves literal header values into the tunnel's Secret: the values first, then the references, so that a crash between the two loses nothing.
 * @returns the resulting tunnel; undefined when a Secret of another owner has the name
 * @throws StoreError `conflict` when the tunnel changed meanwhile
 */
export async function moveLiterals(store: Store, tunnel: Tunnel): Promise<Tunnel | undefined> {
  const { metadata, spec } = tunnel
  const items = spec.config.liveHeaderModifications
  const literal = items.filter(({ valueFrom }) => !valueFrom).map(({ name, value = '', type }) => ({ name, value, type }))
  const about = { secret: headerSecretName(metadata.name), draw: drawKey }
  const moved = referringItems(literal, { items: [], values: new Map() }, about)
  try {
    await addHeaderValues(store, tunnel, moved.added)
  } catch (error) {
    if (error instanceof MooringError && error.code === 'secret_name_taken') return undefined
    throw error
  }
  const rest = [...moved.items]
  const liveHeaderModifications = items.map((item) => (item.valueFrom ? item : rest.shift())).filter(isFields)
  const { uid, resourceVersion } = metadata
  return store.mergePatch(Tunnel, keyOf(tunnel), { spec: { config: { liveHeaderModifications } } }, { uid, resourceVersion })
}
